/** One PostgreSQL for all tests (`node --test --test-global-setup`): each test process would start its own otherwise. */

import { postgresPrograms, runningPostgres } from '../test/kit/find-postgres.ts';
import { startPostgres } from '../test/kit/postgres.ts';

const ends: (() => unknown)[] = [];

export async function globalSetup(): Promise<void> {
  if (runningPostgres() || !postgresPrograms()) return;
  const { url } = await startPostgres({ after: (end) => void ends.push(end) }, 'fsync=off');
  process.env.POSTGRES_URL = url; // the test processes get the variables of this one
}

export async function globalTeardown(): Promise<void> {
  for (const end of ends) await end();
}
