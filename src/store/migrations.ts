/** The schema of the database, as numbered migrations for both dialects. */

import { type Database, DatabaseError } from './database.ts';

/** A script, or one for each dialect. A released migration never changes. */
type Migration = Readonly<Record<Database['dialect'], string>>;

const ledger = (types: { readonly bytes: string; readonly time: string; readonly options: string }) => `
  CREATE TABLE ledger (
    tenant text NOT NULL,
    operation text NOT NULL,
    -- Of a request for an existing payment; empty for an initiation: one X-Request-ID may serve a payment and its cancellation.
    payment text NOT NULL,
    -- In lower case.
    request_id text NOT NULL,
    step text NOT NULL CHECK (step IN ('claimed', 'sending', 'answered', 'happened', 'in-doubt')),
    -- A new claim of the same key gets another one.
    attempt text NOT NULL,
    instance text NOT NULL,
    environment text,
    path text NOT NULL,
    fingerprint_key text,
    fingerprint_request text NOT NULL,
    fingerprint_content text NOT NULL,
    -- Whether an earlier attempt was sent, and released after the answer of the bank.
    follows_released boolean NOT NULL,
    -- In the answer of the bank, or from an operator.
    payment_id text,
    outcome text,
    -- Why it is in doubt.
    why text,
    status integer,
    headers text,
    body ${types.bytes},
    claimed_at ${types.time} NOT NULL,
    listened_until ${types.time},
    answered_at ${types.time},
    PRIMARY KEY (tenant, operation, payment, request_id)
  )${types.options};
  -- No index contains the step: so that a mark is an update in place.
  CREATE INDEX ledger_unanswered ON ledger (instance) WHERE answered_at IS NULL;
  CREATE INDEX ledger_in_doubt ON ledger (claimed_at) WHERE why IS NOT NULL;
  CREATE INDEX ledger_claimed_at ON ledger (claimed_at);

  CREATE TABLE instance (
    id text PRIMARY KEY,
    seen_at ${types.time} NOT NULL
  )${types.options};

  CREATE TABLE active_environment (
    only_row boolean PRIMARY KEY CHECK (only_row),
    environment text NOT NULL,
    version ${types.time} NOT NULL
  );`;

const migrations: readonly Migration[] = [
  {
    sqlite: ledger({ bytes: 'blob', time: 'integer', options: '' }),
    postgres: `
      CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
        'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';
      ${ledger({ bytes: 'bytea', time: 'bigint', options: ' WITH (fillfactor = 70)' })}`,
  },
];

/** The newest version that this build knows. */
const schemaVersion = migrations.length;

/** @returns the version of the schema; 0 for an empty database */
export async function schemaVersionOf(database: Database): Promise<number> {
  const exists =
    database.dialect === 'sqlite'
      ? `SELECT 1 AS one FROM sqlite_schema WHERE name = 'penstock_schema'`
      : `SELECT 1 AS one WHERE to_regclass('penstock_schema') IS NOT NULL`;
  if ((await database.query(exists)).length === 0) return 0;
  const [row] = await database.query('SELECT max(version) AS version FROM penstock_schema');
  return Number(row?.version ?? 0);
}

/**
 * Applies the migrations that are missing, each in a transaction of its own.
 *
 * @throws DatabaseError if the schema is newer than this build
 */
export async function migrate(database: Database): Promise<void> {
  const present = await schemaVersionOf(database);
  if (present > schemaVersion)
    throw new DatabaseError(
      `the database has schema version ${present}, and this version of Penstock knows ${schemaVersion}; start a newer version`,
      { cause: undefined, isRefused: true },
    );
  if (present === 0)
    await database.execute('CREATE TABLE IF NOT EXISTS penstock_schema (version integer PRIMARY KEY)');
  for (const [index, migration] of migrations.entries())
    if (index >= present)
      await database.execute(
        `${migration[database.dialect]}; INSERT INTO penstock_schema (version) VALUES (${index + 1})`,
      );
}
