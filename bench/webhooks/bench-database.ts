/** The database of a measurement: a PostgreSQL server of its own, which writes to the disk, or a SQLite file. */

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Database } from '../../src/store/database.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { temporaryFolder } from '../../test/kit/folder.ts';
import { startPostgres } from '../../test/kit/postgres.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';

export interface BenchDatabase {
  /** Settings of `state`. */
  readonly settings: { readonly postgres: string } | { readonly file: string };
  /** With all files of the database. */
  readonly folder: string;
  /** A SQLite file must not be open in a gateway. */
  open(): Database;
  /** Of the server; none with SQLite. */
  readonly pids: () => readonly number[];
  /** Kills the server and starts it again; `undefined` with SQLite, which has none. */
  readonly restart: (() => Promise<void>) | undefined;
}

export async function startBenchDatabase(
  life: TestScope,
  dialect: Database['dialect'],
): Promise<BenchDatabase> {
  if (dialect === 'sqlite') {
    const file = join(temporaryFolder(life), 'penstock.db');
    return {
      settings: { file },
      folder: dirname(file),
      open: () => openSqlite(file),
      pids: () => [],
      restart: undefined,
    };
  }
  const { url, data, restart } = await startPostgres(life);
  const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  return {
    settings: { postgres: url },
    folder: data,
    open: () => connectPostgres(url),
    pids: () => [Number(pid)],
    restart,
  };
}
