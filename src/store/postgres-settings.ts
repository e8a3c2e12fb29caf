/** The settings of PostgreSQL on which the ledger depends: they belong to the role, because poolers refuse those of a connection. */

import type { Database } from './database.ts';

/** What is set for the role in this database. */
const wanted = {
  /** A locked row must not hold the other rows of its batch. */
  lock_timeout: '200ms',
  statement_timeout: '2s',
  /** A confirmed commit survives a crash of the server. */
  synchronous_commit: 'on',
  /** A server that was cut off from its client gives its locks back. */
  client_connection_check_interval: '1s',
  /** With another level, a statement that has waited for a row fails instead of seeing its newest version. */
  default_transaction_isolation: 'read committed',
  /** Prepared statements are planned once. On an empty table, the planner would choose to read all of it. */
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  /** Compiles statements that seem expensive; ours only seem so, without the other ways. */
  jit: 'off',
} as const;

/** A script for the role that the gateway uses. It is valid for new connections. */
export const setPostgresSettings = `DO $settings$ BEGIN ${Object.entries(wanted)
  .map(
    ([name, value]) =>
      `EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET ${name} = ''${value}''', current_database());`,
  )
  .join(' ')} END $settings$`;

/** What is wrong with the server and the settings of this connection: one sentence each. @throws DatabaseError */
export async function postgresProblems(database: Database): Promise<readonly string[]> {
  const setting = await readSettings(database, Object.keys(wanted));
  const problems = [...(await serverProblems(database))];
  for (const name of ['lock_timeout', 'statement_timeout'])
    if (setting(name) === '0') problems.push(`${name} is not set for this role: run penstock migrate as it`);
  const commits = setting('synchronous_commit');
  if (commits === 'off' || commits === 'local')
    problems.push(
      `synchronous_commit is ${commits}: a crash or a failover of the server could lose confirmed payments; run penstock migrate as this role`,
    );
  const isolation = setting('default_transaction_isolation');
  if (isolation !== wanted.default_transaction_isolation)
    problems.push(
      `default_transaction_isolation is ${isolation}, and must be read committed: run penstock migrate as this role`,
    );
  return problems;
}

/** What a migration cannot change. @throws DatabaseError */
export async function serverProblems(database: Database): Promise<readonly string[]> {
  const setting = await readSettings(database, ['server_encoding', 'server_version', 'server_version_num']);
  const problems: string[] = [];
  if (Number(setting('server_version_num')) < 140_000)
    problems.push(`PostgreSQL ${setting('server_version')} is too old: use 14 or newer`);
  if (setting('server_encoding') !== 'UTF8')
    problems.push(
      `the database has the encoding ${setting('server_encoding')}, which cannot store all names and texts: ` +
        `create another one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0, and name it in state.postgres`,
    );
  return problems;
}

async function readSettings(database: Database, names: readonly string[]): Promise<(name: string) => string> {
  const [row] = await database.query(
    `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(', ')}`,
  );
  return (name) => String(row?.[name]);
}

export const postgresWarningKinds = [
  'fsync',
  'asynchronous-commit',
  'no-standby',
  'no-synchronous-standby',
  'standby-missing',
] as const;

export interface PostgresWarning {
  readonly kind: (typeof postgresWarningKinds)[number];
  /** What it means for payments. */
  readonly text: string;
}

/** What may lose confirmed payments, although the server can be used. @throws DatabaseError */
export async function postgresWarnings(database: Database): Promise<readonly PostgresWarning[]> {
  const [row = {}] = await database.query(
    `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
       current_setting('synchronous_standby_names') AS names, (SELECT count(*) FROM pg_stat_replication) AS standbys,
       -- The state is NULL for a role without pg_monitor.
       (SELECT count(*) FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')) AS synchronous`,
  );
  const { fsync, commits, names, standbys, synchronous } = row;
  const warnings: PostgresWarning[] = [];
  const repeats = 'and a repeat of a lost payment is paid again';
  if (fsync === 'off')
    warnings.push({
      kind: 'fsync',
      text: `fsync is off: a crash of the server's machine can lose confirmed payments, ${repeats}`,
    });
  if (commits === 'off' || commits === 'local')
    warnings.push({
      kind: 'asynchronous-commit',
      text: `synchronous_commit is ${commits}: a crash or a failover can lose confirmed payments, ${repeats}`,
    });
  if (names === '')
    warnings.push(
      Number(standbys) === 0
        ? {
            kind: 'no-standby',
            text: `PostgreSQL has no standby: a loss of its disk loses all payments, ${repeats}`,
          }
        : {
            kind: 'no-synchronous-standby',
            text: `synchronous_standby_names is empty: a failover loses what the standby has not received, ${repeats}, unless an instance remembers it`,
          },
    );
  else if (Number(synchronous) === 0)
    warnings.push({
      kind: 'standby-missing',
      text: `synchronous_standby_names is "${names}", and no such standby is connected: writes are refused until one is`,
    });
  return warnings;
}
