/** Databases with the gateway's tables, for tests. */

import type { Config } from '../../src/config/schema.ts';
import type { Stores } from '../../src/services.ts';
import type { State } from '../../src/state/ports.ts';
import type { Columns, Database } from '../../src/store/database.ts';
import { migrateDatabase, openGatewayDatabase } from '../../src/store/gateway-database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { inMemory, openSqlite } from '../../src/store/sqlite.ts';
import { suiteTemplate } from './find-postgres.ts';
import { newPostgresDatabase, skipWithoutPostgres } from './postgres.ts';
import { databaseOfState } from './redis.ts';
import type { TestScope } from './test-scope.ts';

/** A migrated database, in memory or in PostgreSQL; closed when the test ends. */
export async function newGatewayDatabase(
  t: TestScope,
  dialect: Database['dialect'] = 'sqlite',
): Promise<Database> {
  if (dialect === 'postgres') {
    const postgres = await newMigratedPostgres();
    const connected = connectPostgres(postgres);
    t.after(() => connected.close());
    return connected;
  }
  const database = openSqlite(inMemory, () => Date.now());
  t.after(() => database.close());
  await migrate(database);
  return database;
}

/** A database in memory whose statements wait for its migration: for tests that create their parts without waiting. */
export function newMemoryDatabase(): Database {
  const database = openSqlite(inMemory, () => Date.now());
  const migrated = migrate(database);
  return {
    ...database,
    async batch<Input extends Columns>(...input: Parameters<typeof database.batch<Input>>) {
      await migrated;
      return database.batch(...input);
    },
    async query(...input) {
      await migrated;
      return database.query(...input);
    },
  };
}

/** @returns the address of a migrated PostgreSQL database */
export async function newMigratedPostgres(): Promise<string> {
  const template = suiteTemplate();
  if (template !== undefined) return newPostgresDatabase(template);
  const postgres = await newPostgresDatabase();
  await migrateNew(postgres);
  return postgres;
}

/** A statement may take longer than its 2 s on a busy machine: as an operator does, the command is repeated. */
export async function migrateNew(postgres: string): Promise<void> {
  const migrate = () => migrateDatabase({ postgres, file: null });
  await migrate().catch(migrate).catch(migrate);
}

/** The databases in memory of gateways that have got the same state: one after the other, as after a restart. */
const databasesOfStates = new WeakMap<State, Database>();

/** The addresses of the databases of gateways that run at the same time, with states of one factory. */
const sharedDatabases = new Map<unknown, Promise<string>>();

/** What a gateway under test gets: the former state alone stands for a database, too. */
export async function storesOf(
  given: Partial<Stores> | State | undefined,
  { state }: Config,
): Promise<Partial<Stores>> {
  if (given === undefined) return {};
  if (!('keyValues' in given)) return given.database ? { ...given, ...keptOpen(given.database) } : given;
  if (state.postgres !== null || state.file !== null) return { state: given };
  if (databaseOfState in given && !skipWithoutPostgres) {
    const key = given[databaseOfState];
    const shared = sharedDatabases.get(key) ?? newMigratedPostgres();
    sharedDatabases.set(key, shared);
    return { state: given, ...openGatewayDatabase({ postgres: await shared, file: null }) };
  }
  const database = databasesOfStates.get(given) ?? openSqlite(inMemory, () => Date.now());
  databasesOfStates.set(given, database);
  return { state: given, ...keptOpen(database) };
}

/** The end of a gateway does not close a database that the test has given to it. */
function keptOpen(given: Database) {
  const database = { ...given, close: async () => {} };
  return { database, heartbeatDatabase: database };
}

/** Before a gateway of this configuration starts, as an operator does; an error is left to the gateway. */
export async function migrateFor({ state }: Config): Promise<void> {
  if (state.postgres !== null || state.file !== null) await migrateDatabase(state).catch(() => {});
}
