/**
 * One PostgreSQL for all tests (`node --test --test-global-setup`): each test process would start its own otherwise. Their
 * files are in memory where there is enough of it: tests write many small ones, and a slow disk must not decide.
 */

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { migrateNew } from '../test/kit/database.ts';
import { postgresPrograms, runningPostgres } from '../test/kit/find-postgres.ts';
import { administrate, startPostgres } from '../test/kit/postgres.ts';

const ends: (() => unknown)[] = [];
const life = { after: (end: () => unknown) => void ends.push(end) };

// The test processes get the variables of this one.
export async function globalSetup(): Promise<void> {
  useMemoryForFiles();
  if (runningPostgres() || !postgresPrograms()) return;
  // Each of hundreds of databases would get its turns of autovacuum.
  const { url } = await startPostgres(life, 'fsync=off', 'full_page_writes=off', 'autovacuum=off');
  const template = 'migrated';
  await administrate(url, `CREATE DATABASE ${template}`);
  await migrateNew(url.replace(/postgres$/, template));
  process.env.POSTGRES_URL = url;
  process.env.POSTGRES_TEMPLATE = template;
}

export async function globalTeardown(): Promise<void> {
  for (const end of ends.toReversed()) await end();
}

const wantedBytes = 6 * 1_024 ** 3;

/** On Linux, `/dev/shm` is a file system in memory; in containers, it is often small. */
function useMemoryForFiles(): void {
  const memory = '/dev/shm';
  if (process.platform !== 'linux' || process.env.TMPDIR !== undefined || freeBytesOf(memory) < wantedBytes)
    return;
  const folder = mkdtempSync(`${memory}/penstock-tests-`);
  chmodSync(folder, 0o755); // PostgreSQL runs as another user
  process.env.TMPDIR = folder;
  life.after(() => rmSync(folder, { recursive: true, force: true }));
}

function freeBytesOf(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
