/** As suite-postgres.ts, with PgBouncer between the tests and PostgreSQL: each statement may get another connection. */

import { startPgbouncer } from '../test/kit/pgbouncer.ts';
import { startPostgres } from '../test/kit/postgres.ts';

const ends: (() => unknown)[] = [];
const life = { after: (end: () => unknown) => void ends.push(end) };

export async function globalSetup(): Promise<void> {
  const { url } = await startPostgres(life, 'fsync=off');
  const { port } = await startPgbouncer(life, url);
  process.env.POSTGRES_URL = url; // the test processes get the variables of this one
  process.env.POSTGRES_POOLER = `127.0.0.1:${port}`;
}

export async function globalTeardown(): Promise<void> {
  for (const end of ends.toReversed()) await end();
}
