/** The databases on which the contracts of the store are tested. */

import { join } from 'node:path';
import type { Database } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { inMemory, openSqlite } from '../../src/store/sqlite.ts';
import { newMigratedPostgres } from './database.ts';
import { temporaryFolder } from './folder.ts';
import { skipWithoutPostgres } from './postgres.ts';
import type { TestScope } from './test-scope.ts';

interface DatabaseKind {
  readonly skip: string | false;
  /** A migrated database, with the connections of two instances; SQLite has one. Closed when the test ends. */
  open(t: TestScope): Promise<readonly [Database, Database]>;
}

export const databaseKinds: Readonly<Record<string, DatabaseKind>> = {
  'SQLite in memory': { skip: false, open: (t) => migrated(t, [openSqlite(inMemory)]) },
  'a SQLite file': {
    skip: false,
    open: (t) => migrated(t, [openSqlite(join(temporaryFolder(t), 'penstock.db'))]),
  },
  PostgreSQL: {
    skip: skipWithoutPostgres,
    open: async (t) => {
      const url = await newMigratedPostgres();
      return migrated(t, [connectPostgres(url), connectPostgres(url)]);
    },
  },
};

async function migrated(
  t: TestScope,
  [one, other = one]: readonly [Database, Database?],
): Promise<readonly [Database, Database]> {
  t.after(async () => {
    await one.close();
    if (other !== one) await other.close();
  });
  await migrate(one);
  return [one, other];
}
