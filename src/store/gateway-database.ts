/** The database that the settings select, and whether this build can use it. */

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { UnusableConfigError } from '../config/config-errors.ts';
import type { StateSettings } from '../config/schema.ts';
import { type Database, DatabaseAccessError, DatabaseError } from './database.ts';
import { applyPostgresSettings, migrate, readSchema, tooNewFor } from './migrations.ts';
import { connectPostgres } from './postgres.ts';
import { createPostgresHosts } from './postgres-hosts.ts';
import { postgresProblems, postgresWarnings, serverProblems } from './postgres-settings.ts';
import { inMemory, openSqlite } from './sqlite.ts';

type DatabaseSettings = Pick<StateSettings, 'postgres' | 'file'>;

export interface GatewayDatabases {
  readonly database: Database;
  /**
   * For the reports of this instance, the active environment and the holds, which must not wait behind payments: in PostgreSQL,
   * connections of its own.
   */
  readonly heartbeatDatabase: Database;
}

/** The heartbeat must not wait while the report for operators is stored, and those of others are read: each may take 2 s. */
const heartbeatConnections = 3;

/** A database that this build cannot use until somebody changes something: a restart does not help. */
export class UnusableDatabaseError extends UnusableConfigError {}

/** Connects or opens the file with the first statement. */
export function openGatewayDatabase(settings: DatabaseSettings): GatewayDatabases {
  if (settings.postgres === null) {
    const database = openFile(settings);
    return { database, heartbeatDatabase: database };
  }
  const hosts = createPostgresHosts(settings.postgres);
  return {
    database: connectPostgres(settings.postgres, { hosts }),
    heartbeatDatabase: connectPostgres(settings.postgres, { hosts, connections: heartbeatConnections }),
  };
}

const openFile = ({ file }: DatabaseSettings): Database => openSqlite(file ?? inMemory);

/** With one connection, which is closed afterwards. @throws UnusableDatabaseError if the database refuses the role */
async function onOwnConnection<Result>(
  settings: DatabaseSettings,
  use: (database: Database) => Promise<Result>,
): Promise<Result> {
  const { postgres } = settings;
  const database = postgres === null ? openFile(settings) : connectPostgres(postgres, { connections: 1 });
  try {
    return await refuseWithoutAccess(use(database));
  } finally {
    await database.close();
  }
}

/**
 * Checks that the database has been created, and applies the migrations that are missing; a database in memory is created.
 *
 * @throws UnusableDatabaseError if it is empty, too new, on a server that is too old, has the wrong settings, or refuses the role;
 * DatabaseError if it cannot be reached, or an older instance is running that a migration would break
 */
export async function prepareDatabase(database: Database, settings: DatabaseSettings): Promise<void> {
  if (settings.postgres === null) return prepare(database, settings);
  // A new connection: ALTER ROLE, in the migrations, does not change the settings of open ones.
  await onOwnConnection(settings, (connected) => prepare(connected, settings));
}

/** @throws UnusableDatabaseError if the database refuses the role: at the start and for a command, this is no outage */
export async function refuseWithoutAccess<Result>(statements: Promise<Result>): Promise<Result> {
  try {
    return await statements;
  } catch (cause) {
    if (!(cause instanceof DatabaseAccessError)) throw cause;
    throw new UnusableDatabaseError(`state.postgres: ${cause.reason}`, { cause });
  }
}

async function prepare(database: Database, settings: DatabaseSettings): Promise<void> {
  if (settings.postgres !== null || settings.file !== null) await refuseUnusableSchema(database, settings);
  await migrate(database);
  if (database.dialect === 'postgres') refuse(await postgresProblems(database));
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new UnusableDatabaseError(`state.postgres: ${problems.join('; ')}`);
}

/** @throws UnusableDatabaseError if the database is empty or too new */
export async function refuseUnusableSchema(
  database: Database,
  { postgres, file }: DatabaseSettings,
): Promise<void> {
  const isMissing = postgres === null && file !== null && existsSync(dirname(file)) && !existsSync(file);
  const present = isMissing ? { version: 0, oldest: 0 } : await readSchema(database);
  const problem = tooNewFor(present);
  if (problem !== undefined) throw new UnusableDatabaseError(`${nameOf({ postgres, file })} ${problem}`);
  if (present.version === 0)
    throw new UnusableDatabaseError(
      `${nameOf({ postgres, file })} ${isMissing ? 'does not exist' : 'is empty'}: if it is new, create its tables with penstock migrate; otherwise check the address, or whether its volume is mounted`,
    );
}

const nameOf = ({ postgres, file }: DatabaseSettings) =>
  postgres === null ? `state.file: ${file}` : 'state.postgres: the database';

/**
 * What may lose payments in PostgreSQL, a sentence each. Changes nothing.
 *
 * @throws UnusableDatabaseError as `prepareDatabase`, also if tables or settings are missing; DatabaseError if it cannot be reached
 */
export async function checkGatewayDatabase(settings: DatabaseSettings): Promise<readonly string[]> {
  if (settings.postgres === null) return [];
  return onOwnConnection(settings, async (database) => {
    await refuseUnusableSchema(database, settings);
    refuse(await postgresProblems(database));
    return (await postgresWarnings(database)).map(({ text }) => text);
  });
}

/** Refuses all statements until the database is prepared: one that lacks tables or settings could lose what it has confirmed. */
export function usableWhen(isPrepared: () => boolean, database: Database): Database {
  const notPrepared = () =>
    Promise.reject(new DatabaseError('the database has not been checked yet', 'none'));
  return {
    ...database,
    batch: (statement, rows) => (isPrepared() ? database.batch(statement, rows) : notPrepared()),
    query: (sql, values) => (isPrepared() ? database.query(sql, values) : notPrepared()),
    execute: (script, maxMs) => (isPrepared() ? database.execute(script, maxMs) : notPrepared()),
  };
}

/**
 * Creates the tables in an empty database, applies the migrations that are missing, and sets what PostgreSQL needs for this role.
 *
 * @returns the version of the schema before and after
 * @throws UnusableDatabaseError if the server cannot be used, or refuses the role; DatabaseError
 */
export const migrateDatabase = (
  settings: DatabaseSettings,
): Promise<{ readonly from: number; readonly to: number }> => onOwnConnection(settings, migrateAll);

async function migrateAll(database: Database) {
  if (database.dialect === 'postgres') refuse(await serverProblems(database));
  const { version: from } = await readSchema(database);
  await migrate(database);
  if (database.dialect === 'postgres') await applyPostgresSettings(database);
  const { version: to } = await readSchema(database);
  if (database.dialect === 'postgres') await endConnectionOfServer(database);
  return { from, to };
}

/** A pooler would give this connection, which is older than the settings of the role, to the gateway that starts next. */
const endConnectionOfServer = (database: Database) =>
  database.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {}); // it ends with an error
