/** The schema of the database, as numbered migrations for both dialects. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, DatabaseAccessError, DatabaseError, hasNoEffect } from './database.ts';
import { instanceLeaseMs } from './ledger-statements.ts';
import { setPostgresSettings } from './postgres-settings.ts';
import type { ColumnTypes } from './schema/column-types.ts';
import { notificationTables } from './schema/tables-of-notifications.ts';
import { operationTables } from './schema/tables-of-operation.ts';
import { paymentTables, storageSettings } from './schema/tables-of-payments.ts';
import { recordTables } from './schema/tables-of-records.ts';

/** A script for each dialect. A released migration never changes. docs/architecture/migrations.md says how to write one. */
interface Migration extends Readonly<Record<Database['dialect'], string>> {
  /** The oldest version of the schema whose builds can use the database after this migration. */
  readonly oldest: number;
}

const tables = (types: ColumnTypes) =>
  [paymentTables, notificationTables, recordTables, operationTables]
    .map((create) => create(types))
    .join('\n');

const migrations: readonly Migration[] = [
  {
    oldest: 1,
    sqlite: tables({ bytes: 'blob', time: 'integer' }),
    postgres: `
      CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
        'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';
      -- It changes when a standby becomes the primary server.
      CREATE FUNCTION current_timeline() RETURNS text LANGUAGE sql VOLATILE AS
        'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)';
      ${tables({ bytes: 'bytea', time: 'bigint' })};
      ${storageSettings}
      ${setPostgresSettings}`,
  },
];

/** The newest version that this build knows. */
export const schemaVersion = migrations.length;
/** For how long a lock on the schema is tried again: an instance that migrates, or a long transaction. */
const attempts = 20;
const retryAfterMs = 250;
/**
 * While a migration waits for a lock on a table, all later statements on the table wait behind it. Shorter than `lock_timeout` of the role,
 * after which these statements fail.
 */
const lockTimeout = '100ms';
/** A migration may build an index. Milliseconds. */
const maxMigrationMs = 600_000;

/** What a database contains. An empty one has version 0. */
export interface Schema {
  readonly version: number;
  /** The oldest version whose builds can use it. */
  readonly oldest: number;
}

/** @throws DatabaseError */
export async function readSchema(database: Database): Promise<Schema> {
  try {
    return await readVersions(database);
  } catch (thrown) {
    if (!hasNoEffect(thrown)) throw thrown;
    // If there is one now, another instance has created it in the meantime, or the error is another one.
    return (await hasSchema(database)) ? readVersions(database) : { version: 0, oldest: 0 };
  }
}

async function readVersions(database: Database): Promise<Schema> {
  const [row] = await database.query(
    'SELECT max(version) AS version, max(oldest) AS oldest FROM penstock_schema',
  );
  return { version: Number(row?.version ?? 0), oldest: Number(row?.oldest ?? 0) };
}

async function hasSchema(database: Database): Promise<boolean> {
  const exists =
    database.dialect === 'sqlite'
      ? `SELECT 1 AS one FROM sqlite_schema WHERE name = 'penstock_schema'`
      : `SELECT 1 AS one WHERE to_regclass('penstock_schema') IS NOT NULL`;
  return (await database.query(exists)).length > 0;
}

/** Why this build cannot use the database, to be put behind its name; `undefined` if it can. */
export function tooNewFor({ version, oldest }: Schema): string | undefined {
  if (oldest <= schemaVersion) return undefined;
  return `has schema version ${version}, which only versions of Penstock that know ${oldest} or a later one can use; this one knows ${schemaVersion}: start a newer version`;
}

/**
 * Applies the migrations that are missing, each in a transaction of its own. Several instances may do so at the same time. A newer database
 * that this build can use is left as it is.
 *
 * @throws DatabaseError if the database is too new for this build, cannot be changed, or is used by an instance that is too old for a
 * migration
 */
export async function migrate(database: Database): Promise<void> {
  let present: Schema;
  do {
    present = await untilUnlocked(database, () => applyNext(database));
    const problem = tooNewFor(present);
    if (problem !== undefined) throw new DatabaseError(`the database ${problem}`, 'none-ever');
  } while (present.version < schemaVersion);
}

/** @returns what the database contains then */
async function applyNext(database: Database): Promise<Schema> {
  const present = await readSchema(database);
  const next = migrations[present.version];
  if (!next) return present;
  const version = present.version + 1;
  const { oldest } = next;
  /** A SQLite file has no other instance. */
  const mayStopInstances = database.dialect === 'postgres' && present.version > 0 && oldest > present.oldest;
  await database.execute(
    `${database.dialect === 'postgres' ? limits : ''}
    CREATE TABLE IF NOT EXISTS penstock_schema (version integer PRIMARY KEY, oldest integer NOT NULL);
    -- First: of two instances, the other one waits for it, and is then refused.
    INSERT INTO penstock_schema (version, oldest) VALUES (${version}, ${oldest});
    ${mayStopInstances ? refuseWhileOlderInstancesLive(version, oldest) : ''}
    ${next[database.dialect]}`,
    maxMigrationMs,
  );
  return { version, oldest };
}

const limits = `SET LOCAL lock_timeout = '${lockTimeout}'; SET LOCAL statement_timeout = 0;`;

/**
 * Reports of instances wait until the transaction ends: an instance that starts at this moment is either found, or finds the new version
 * after its report.
 */
const refuseWhileOlderInstancesLive = (version: number, oldest: number): string => `
    LOCK TABLE instance IN SHARE MODE;
    DO $check$ DECLARE living text; BEGIN
      SELECT string_agg(id, ', ' ORDER BY id) INTO living FROM instance
        WHERE schema_version < ${oldest} AND seen_at > now_ms() - ${instanceLeaseMs};
      IF living IS NOT NULL THEN
        RAISE EXCEPTION 'schema version ${version} cannot be used by instances that are running: stop %, or replace them with a version of Penstock that knows schema version ${oldest}', living;
      END IF;
    END $check$;`;

/** For the role of this connection, valid for new ones. The schema may have been created by another role. @throws DatabaseError */
export async function applyPostgresSettings(database: Database): Promise<void> {
  await untilUnlocked(database, () => database.execute(setPostgresSettings, maxMigrationMs));
}

/** In PostgreSQL, another instance may have done the same, or holds a lock. */
async function untilUnlocked<Result>({ dialect }: Database, run: () => Promise<Result>): Promise<Result> {
  for (let failures = 0; ; ) {
    try {
      return await run();
    } catch (thrown) {
      const isFinal = dialect === 'sqlite' || !hasNoEffect(thrown) || thrown instanceof DatabaseAccessError;
      if (isFinal || ++failures === attempts) throw thrown;
      await sleep(retryAfterMs);
    }
  }
}
