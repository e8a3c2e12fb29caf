/** Where the tests find a PostgreSQL: one that runs already, or the programs to start one. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { onPath } from './on-path.ts';

/** The address of a server in which tests may create databases, if the environment names one. */
export const runningPostgres = (): string | undefined => process.env.POSTGRES_URL;

/** The migrated database of the server of the whole suite, which ends with the suite: nothing in it must be removed. */
export const suiteTemplate = (): string | undefined => process.env.POSTGRES_TEMPLATE || undefined;

/** The folder with `initdb` and `postgres`: `POSTGRES_BIN`, or where they are installed. */
export function postgresPrograms(): string | undefined {
  if (process.env.POSTGRES_BIN) return process.env.POSTGRES_BIN;
  const debian = '/usr/lib/postgresql';
  const [newest] = versionsIn(debian).toSorted((one, other) => Number(other) - Number(one));
  if (newest !== undefined) return join(debian, newest, 'bin');
  return onPath('initdb')?.replace(/\/initdb$/, '');
}

function versionsIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

export const howToGetPostgres =
  'apt-get install postgresql, or brew install postgresql, or docker run -p 5432:5432 -e POSTGRES_PASSWORD=test postgres:17 with ' +
  'POSTGRES_URL=postgres://postgres:test@127.0.0.1/postgres';

/** Where a missing PostgreSQL is a failure and not a skip. */
export const postgresIsRequired = (): boolean => process.env.CI === 'true';
