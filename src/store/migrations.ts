/** The schema of the database, as numbered migrations for both dialects. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, DatabaseAccessError, DatabaseError, hasNoEffect } from './database.ts';
import { instanceLeaseMs } from './ledger-statements.ts';
import { setPostgresSettings } from './postgres-settings.ts';

/** A script for each dialect. A released migration never changes. docs/architecture/migrations.md says how to write one. */
interface Migration extends Readonly<Record<Database['dialect'], string>> {
  /** The oldest version of the schema whose builds can use the database after this migration. */
  readonly oldest: number;
}

const tables = (types: { readonly bytes: string; readonly time: string }) => `
  CREATE TABLE ledger (
    -- In lower case. First, so that the writes of all tenants with one id are found.
    request_id text NOT NULL,
    tenant text NOT NULL,
    operation text NOT NULL,
    -- Of a request for an existing payment; empty for an initiation: one X-Request-ID may serve a payment and its cancellation.
    payment text NOT NULL,
    step text NOT NULL CHECK (step IN ('claimed', 'sending', 'released', 'answered', 'happened', 'in-doubt')),
    -- A new claim of the same key gets another one.
    attempt text NOT NULL,
    instance text NOT NULL,
    environment text,
    path text NOT NULL,
    fingerprint_key text,
    fingerprint_request text NOT NULL,
    fingerprint_content text NOT NULL,
    -- Whether it is a step of an authorisation before the last one: it executes nothing.
    is_first_factor boolean NOT NULL,
    -- Whether an earlier attempt was sent, and released after the answer of the bank.
    follows_released boolean NOT NULL,
    -- In the answer of the bank, or from an operator.
    payment_id text,
    outcome text,
    -- Why it is in doubt.
    why text,
    -- Another attempt with this key that has reached the bank, too: for operators.
    other_attempt text,
    status integer,
    headers text,
    body ${types.bytes},
    claimed_at ${types.time} NOT NULL,
    marked_at ${types.time},
    -- Until when an answer is awaited.
    listened_until ${types.time},
    -- When it was released, answered, or resolved as happened.
    ended_at ${types.time},
    PRIMARY KEY (request_id, tenant, operation, payment)
  );
  -- No index contains the step: so that a mark is an update in place.
  CREATE INDEX ledger_running ON ledger (instance) WHERE ended_at IS NULL;
  CREATE INDEX ledger_in_doubt ON ledger (claimed_at) WHERE why IS NOT NULL;
  CREATE INDEX ledger_claimed_at ON ledger (claimed_at);

  -- Which environment and tenant a payment belongs to. Two banks may give the same id to two payments.
  CREATE TABLE payment (
    payment_id text NOT NULL,
    environment text NOT NULL,
    tenant text NOT NULL,
    -- Service and product of its initiation: payments/sepa-credit-transfers. NULL if payments of several products have this id.
    initiated_as text,
    -- JSON: the ids that the gateway must send in the spelling of the bank.
    bank_ids text,
    -- Whether it is remembered for ever, as a standing order is.
    is_permanent boolean NOT NULL,
    created_at ${types.time} NOT NULL,
    used_at ${types.time} NOT NULL,
    PRIMARY KEY (payment_id, environment)
  );
  CREATE INDEX payment_used_at ON payment (used_at) WHERE NOT is_permanent;
  -- For the list of payments, newest first.
  CREATE INDEX payment_created_at ON payment (created_at);
  CREATE INDEX payment_of_tenant ON payment (tenant, created_at);
  CREATE INDEX payment_in_environment ON payment (environment, created_at);

  -- The changes of the transaction status of a payment that answers of the bank have shown.
  CREATE TABLE payment_status (
    payment_id text NOT NULL,
    environment text NOT NULL,
    status text NOT NULL,
    seen_at ${types.time} NOT NULL,
    -- What has shown it: see SeenBy in payment-history.ts.
    seen_by text NOT NULL,
    -- Of the request that has shown it; NULL for reads of the gateway itself.
    request_id text,
    FOREIGN KEY (payment_id, environment) REFERENCES payment (payment_id, environment) ON DELETE CASCADE
  );
  -- With the time, because lists and inserts look for the newest status of a payment: 77 bytes for each row in PostgreSQL, without it 30.
  CREATE INDEX payment_status_of ON payment_status (payment_id, environment, seen_at);

  CREATE TABLE request_record (
    instance text NOT NULL,
    -- Of the record on this instance.
    number ${types.time} NOT NULL,
    -- Milliseconds since 1970.
    received_at ${types.time} NOT NULL,
    request_id text NOT NULL,
    operation text,
    client text,
    -- An id.
    tenant text,
    environment text,
    -- Service and product, such as payments/sepa-credit-transfers.
    product text,
    -- Of the path, or in the answer to an initiation.
    payment_id text,
    -- Of the HTTP response.
    status integer NOT NULL,
    -- succeeded, refused-by-bank, failed, refused or in-doubt.
    outcome text NOT NULL,
    -- The code of tppMessages, the code of the gateway, and its text.
    bank_error text,
    error text,
    why text,
    -- Tenths of a millisecond.
    duration_tenths integer,
    served_from text,
    -- JSON.
    events text NOT NULL,
    PRIMARY KEY (instance, number)
  );
  -- With the tenant, so that a search of one tenant reads no rows of others with the same id. Last, because not every search has one.
  CREATE INDEX request_record_request_id ON request_record (lower(request_id), received_at, tenant);
  CREATE INDEX request_record_payment ON request_record (payment_id, received_at, tenant) WHERE payment_id IS NOT NULL;
  -- For the history of a payment: the same condition as in payment-history.ts.
  CREATE INDEX request_record_remarkable ON request_record (payment_id, tenant, received_at)
    WHERE (outcome <> 'succeeded'
      OR operation IN ('initiatePayment', 'startAuthorisation', 'updatePsuData', 'updatePayment', 'cancelPayment'));
  CREATE INDEX request_record_received_at ON request_record (received_at);
  CREATE INDEX request_record_tenant ON request_record (tenant, received_at);

  -- How much of the records each tenant uses, in each period of the retention, by the requests of each instance.
  CREATE TABLE record_share (
    -- Its number since 1970: see tenant-shares.ts.
    period ${types.time} NOT NULL,
    -- As in the records.
    tenant text NOT NULL,
    instance text NOT NULL,
    bytes ${types.time} NOT NULL,
    -- Requests of which no record is stored.
    not_stored ${types.time} NOT NULL,
    PRIMARY KEY (period, tenant, instance)
  );

  -- The requests of an instance in each minute: of all, also of those without a record.
  CREATE TABLE minute_figure (
    -- Its beginning: seconds since 1970.
    minute ${types.time} NOT NULL,
    instance text NOT NULL,
    requests integer NOT NULL,
    refused integer NOT NULL,
    failed integer NOT NULL,
    -- Status reads, by how they were answered.
    hit integer NOT NULL,
    stale integer NOT NULL,
    shared integer NOT NULL,
    miss integer NOT NULL,
    bypass integer NOT NULL,
    -- JSON: pairs of a bucket of the duration and the number of requests in it.
    durations text NOT NULL,
    PRIMARY KEY (minute, instance)
  );

  -- The errors of an instance in each minute. Empty texts: not known, or none.
  CREATE TABLE minute_error (
    minute ${types.time} NOT NULL,
    instance text NOT NULL,
    code text NOT NULL,
    bank_status text NOT NULL,
    bank_error text NOT NULL,
    client text NOT NULL,
    tenant text NOT NULL,
    operation text NOT NULL,
    environment text NOT NULL,
    requests integer NOT NULL,
    -- Of the last one: when it ended, in milliseconds since 1970, and its X-Request-ID.
    last_at ${types.time} NOT NULL,
    last_request_id text NOT NULL,
    PRIMARY KEY (minute, instance, code, bank_status, bank_error, client, tenant, operation, environment)
  );

  -- What the contract guard has counted: the totals of each instance on each day, which replace each other while the day lasts.
  CREATE TABLE contract_deviation (
    -- Of UTC, when it was counted: days since 1970.
    day integer NOT NULL,
    instance text NOT NULL,
    -- Of the row on this instance.
    number integer NOT NULL,
    -- Of the messages.
    environment text NOT NULL,
    -- The hash of the contract that they were checked against, and whether it is that of their environment.
    contract text NOT NULL,
    is_own boolean NOT NULL,
    -- request or response.
    direction text NOT NULL,
    operation text NOT NULL,
    -- In the schema.
    path text NOT NULL,
    rule text NOT NULL,
    level text NOT NULL,
    effect text NOT NULL,
    -- The hash of the contract of their environment, if both contracts refuse them; otherwise NULL.
    also_refused_by text,
    client text NOT NULL,
    messages integer NOT NULL,
    -- Of the first and the last message: when it was received, in milliseconds since 1970, and the X-Request-ID of the last one.
    first_at ${types.time} NOT NULL,
    last_at ${types.time} NOT NULL,
    last_request_id text NOT NULL,
    PRIMARY KEY (day, instance, number)
  );

  -- Messages that were checked, with or without a deviation. Columns as above.
  CREATE TABLE contract_check (
    day integer NOT NULL,
    instance text NOT NULL,
    number integer NOT NULL,
    environment text NOT NULL,
    contract text NOT NULL,
    is_own boolean NOT NULL,
    direction text NOT NULL,
    operation text NOT NULL,
    client text NOT NULL,
    messages integer NOT NULL,
    first_at ${types.time} NOT NULL,
    PRIMARY KEY (day, instance, number)
  );

  -- Messages that were not checked, and deviations that were not counted. Columns as above.
  CREATE TABLE contract_skip (
    day integer NOT NULL,
    instance text NOT NULL,
    number integer NOT NULL,
    environment text NOT NULL,
    direction text NOT NULL,
    -- sampled-out, shed, failed or not-counted.
    reason text NOT NULL,
    messages integer NOT NULL,
    PRIMARY KEY (day, instance, number)
  );

  -- How many answers of an operation each instance has checked. Ten of all instances are its baseline: what the bank has always done.
  CREATE TABLE contract_baseline (
    environment text NOT NULL,
    contract text NOT NULL,
    operation text NOT NULL,
    instance text NOT NULL,
    -- Ten as well when all instances together have checked ten: the baseline stays although rows of ended instances expire.
    answers integer NOT NULL,
    -- Written at least once a day while there are answers.
    seen_at ${types.time} NOT NULL,
    PRIMARY KEY (environment, contract, operation, instance)
  );

  -- The kinds of deviations that answers have had.
  CREATE TABLE contract_kind (
    environment text NOT NULL,
    contract text NOT NULL,
    operation text NOT NULL,
    path text NOT NULL,
    rule text NOT NULL,
    -- Of the first deviation.
    level text NOT NULL,
    effect text NOT NULL,
    -- The instance that has found it first, and when: milliseconds since 1970.
    found_by text NOT NULL,
    found_at ${types.time} NOT NULL,
    -- Whether the operation had a baseline then: a change of the bank, which this instance announces.
    is_change boolean NOT NULL,
    -- Written at least once a day while there are such answers.
    seen_at ${types.time} NOT NULL,
    PRIMARY KEY (environment, contract, operation, path, rule)
  );

  CREATE TABLE instance (
    id text PRIMARY KEY,
    seen_at ${types.time} NOT NULL,
    -- Since when it has reported without a gap.
    reporting_since ${types.time} NOT NULL,
    -- Since when claims wait for what it remembers, after a failover; NULL when it has written that back.
    awaited_at ${types.time},
    -- The newest one that its build knows.
    schema_version integer NOT NULL
  );

  -- The last failover that an instance has noticed.
  CREATE TABLE failover (
    only_row boolean PRIMARY KEY CHECK (only_row),
    -- Two failovers may lead to the same timeline.
    id text NOT NULL,
    -- Of PostgreSQL since then.
    timeline text NOT NULL,
    noticed_at ${types.time} NOT NULL
  );
  INSERT INTO failover (only_row, id, timeline, noticed_at) VALUES (true, 'none', current_timeline(), 0);

  -- What each instance reported last, for operators. Unlike \`instance\`, nothing depends on it, and it stays for an hour after the end.
  CREATE TABLE instance_report (
    id text PRIMARY KEY,
    started_at ${types.time} NOT NULL,
    reported_at ${types.time} NOT NULL,
    -- When it has announced its end.
    stopped_at ${types.time},
    version text NOT NULL,
    -- By how much its clock is ahead of that of the database.
    clock_difference_ms ${types.time} NOT NULL,
    -- SHA-256, without secrets and what may differ between instances.
    configuration_hash text NOT NULL,
    -- JSON: readiness, figures, circuits, queues.
    report text NOT NULL
  );

  -- The counts of each second in which an instance had requests: of the last minutes.
  CREATE TABLE instance_second (
    instance text NOT NULL,
    -- Seconds since 1970, on the clock of the instance.
    second ${types.time} NOT NULL,
    inserted_at ${types.time} NOT NULL,
    -- JSON.
    counts text NOT NULL,
    PRIMARY KEY (instance, second)
  );
  CREATE INDEX instance_second_inserted_at ON instance_second (inserted_at);

  -- The last request that all instances load their configuration again, if not all of them have answered.
  CREATE TABLE reload_request (
    only_row boolean PRIMARY KEY CHECK (only_row),
    id text NOT NULL,
    requested_at ${types.time} NOT NULL,
    who text NOT NULL,
    reason text
  );

  -- Subscriptions to the status of payments (webhooks), one for each tenant and payment, and when work on them is due. Of leased work, the
  -- time is the end of the lease; NULL: there is no such work.
  CREATE TABLE subscription (
    -- Of tenant, environment and payment: a hash.
    id text PRIMARY KEY,
    tenant text NOT NULL,
    environment text NOT NULL,
    payment_id text NOT NULL,
    -- Another one after each change.
    revision text NOT NULL,
    changed_at ${types.time} NOT NULL,
    -- JSON; encrypted where a key is configured.
    record text NOT NULL,
    read_at ${types.time},
    read_lease text,
    delivery_at ${types.time},
    delivery_lease text,
    is_failing boolean NOT NULL,
    -- Since when its message is dead.
    dead_since ${types.time},
    -- Of a message that an endpoint has not accepted: a hash of tenant and origin.
    failed_endpoint text
  );
  CREATE INDEX subscription_read_at ON subscription (tenant, environment, read_at);
  CREATE INDEX subscription_payment ON subscription (payment_id);
  CREATE INDEX subscription_delivery_at ON subscription (tenant, delivery_at) WHERE delivery_at IS NOT NULL;
  CREATE INDEX subscription_failing ON subscription (tenant) WHERE is_failing;
  CREATE INDEX subscription_dead_since ON subscription (dead_since, tenant) WHERE dead_since IS NOT NULL;
  CREATE INDEX subscription_endpoint ON subscription (failed_endpoint, delivery_at) WHERE failed_endpoint IS NOT NULL;

  -- Messages of webhooks, for operators: the one that is due is in the record of its subscription.
  CREATE TABLE webhook_message (
    -- webhook-id.
    id text PRIMARY KEY,
    -- The subscription may have ended.
    subscription text NOT NULL,
    tenant text NOT NULL,
    environment text NOT NULL,
    payment_id text NOT NULL,
    client text NOT NULL,
    -- The origin of the URL.
    endpoint text NOT NULL,
    sequence ${types.time} NOT NULL,
    transaction_status text NOT NULL,
    -- Of the authorisation that the message is about.
    sca_status text,
    is_final boolean NOT NULL,
    -- See MessageState in webhook-messages.ts.
    state text NOT NULL,
    attempts integer NOT NULL,
    -- Why the last attempt has failed.
    why text,
    created_at ${types.time} NOT NULL,
    changed_at ${types.time} NOT NULL
  );
  CREATE INDEX webhook_message_payment ON webhook_message (payment_id, environment, sequence);
  CREATE INDEX webhook_message_created_at ON webhook_message (created_at);

  -- The payments of the tokens at which banks notify the gateway.
  CREATE TABLE notified_payment (
    token_id text PRIMARY KEY,
    -- NULL: a notification has arrived before the payment was stored.
    tenant text,
    -- The key of the payment in the cache.
    payment_key text,
    -- Whether a notification has arrived before the payment was stored.
    is_early boolean NOT NULL,
    kept_until ${types.time} NOT NULL
  );
  CREATE INDEX notified_payment_kept_until ON notified_payment (kept_until);

  CREATE TABLE secret (
    name text PRIMARY KEY,
    -- Encrypted where a key is configured.
    value text NOT NULL
  );

  -- What changed on any instance, and who asked for it.
  CREATE TABLE timeline (
    -- Several instances may notice one event: they give it the same id.
    id text PRIMARY KEY,
    happened_at ${types.time} NOT NULL,
    kind text NOT NULL,
    instance text NOT NULL,
    who text,
    environment text,
    lane text,
    text text NOT NULL,
    -- JSON.
    details text NOT NULL
  );
  CREATE INDEX timeline_happened_at ON timeline (happened_at);

  -- Sessions of operators, and sign-ins that have begun.
  CREATE TABLE operator_session (
    -- Of the id in the cookie.
    key_hash text PRIMARY KEY,
    -- JSON; encrypted where a key is configured.
    record text NOT NULL,
    expires_at ${types.time} NOT NULL
  );
  CREATE INDEX operator_session_expires_at ON operator_session (expires_at);

  CREATE TABLE active_environment (
    only_row boolean PRIMARY KEY CHECK (only_row),
    environment text NOT NULL,
    version ${types.time} NOT NULL
  );

  -- Circuits that operators keep open or closed.
  CREATE TABLE hold (
    environment text NOT NULL,
    lane text NOT NULL,
    held_as text NOT NULL CHECK (held_as IN ('open', 'closed')),
    reason text NOT NULL,
    until_ms ${types.time} NOT NULL,
    PRIMARY KEY (environment, lane)
  );

  -- The names that a tenant has and has had. Its id, which all rows contain, is the first one.
  CREATE TABLE tenant_name (
    name text PRIMARY KEY,
    tenant text NOT NULL,
    named_at ${types.time} NOT NULL
  );

  -- The tenant of each API key and certificate that was ever configured: its SHA-256, as in the configuration.
  CREATE TABLE credential (
    hash text PRIMARY KEY,
    tenant text NOT NULL
  );

  -- Increased when a credential gets another tenant, or is new: what an instance knew before is out of date.
  CREATE TABLE identity_revision (
    only_row boolean PRIMARY KEY CHECK (only_row),
    revision ${types.time} NOT NULL
  );
  INSERT INTO identity_revision (only_row, revision) VALUES (true, 0);

  -- As tenant_name.
  CREATE TABLE environment_name (
    name text PRIMARY KEY,
    environment text NOT NULL,
    named_at ${types.time} NOT NULL
  );

  -- Origin and base path of the bank, of each environment that a write was sent to.
  CREATE TABLE environment_address (
    environment text PRIMARY KEY,
    address text NOT NULL
  );

  -- Each record has the hash of the one before it.
  CREATE TABLE audit (
    number ${types.time} PRIMARY KEY,
    -- ISO 8601, UTC.
    recorded_at text NOT NULL,
    who text NOT NULL,
    action text NOT NULL,
    outcome text NOT NULL,
    -- JSON, as it was hashed.
    details text NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL,
    -- A copy from the details, for the index.
    payment_id text
  );
  CREATE INDEX audit_payment ON audit (payment_id) WHERE payment_id IS NOT NULL;`;

/** How PostgreSQL stores and vacuums the tables that grow or change most. */
const storageSettings = `
  ALTER TABLE ledger SET (
    -- Half of each page stays empty for marks, which are then updates in place: they write no index.
    fillfactor = 50,
    -- Within a day, all rows are updated twice and deleted: with the default, a fifth, it would be much larger before space is used again.
    autovacuum_vacuum_scale_factor = 0.05);
  ALTER TABLE payment SET (
    -- Of 400 million rows, 8 million: so many fit in the default memory of a vacuum, which then reads the indexes once.
    autovacuum_vacuum_scale_factor = 0.02,
    -- Most rows never change again: they are frozen in small steps soon after they are inserted, and not all at once after months.
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_freeze_min_age = 0);
  ALTER TABLE payment_status SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_freeze_min_age = 0);
  -- Each row changes every second, in its own page.
  ALTER TABLE instance_report SET (fillfactor = 20);`;

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
    const [row] = await database.query(
      'SELECT max(version) AS version, max(oldest) AS oldest FROM penstock_schema',
    );
    return { version: Number(row?.version ?? 0), oldest: Number(row?.oldest ?? 0) };
  } catch (thrown) {
    if (!hasNoEffect(thrown) || (await hasSchema(database))) throw thrown;
    return { version: 0, oldest: 0 };
  }
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
