/** Random histories of the ledger's table. `FUZZ_RUNS` and `FUZZ_SEED` set runs and seed. */

import { type TestContext, test } from 'node:test';
import { migrate } from '../../src/store/migrations.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { runLedgerHistory } from '../kit/ledger-history.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { seededRandom } from '../kit/random.ts';
import { seededRuns } from '../kit/seeded-runs.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 100);

test('SQLite: the bank pays once, and no outcome is lost', async (t) => {
  await run(t, runs, async (seed) => {
    const database = openSqlite(':memory:');
    await migrate(database);
    await runLedgerHistory(database, seededRandom(seed));
    await database.close();
  });
});

test('PostgreSQL: the bank pays once, and no outcome is lost', {
  skip: skipWithoutPostgres,
}, async (t: TestContext) => {
  const database = connectPostgres(await newMigratedPostgres());
  t.after(() => database.close());
  await migrate(database);
  await run(t, Math.ceil(runs / 16), async (seed) => {
    await database.execute('TRUNCATE ledger, payment, payment_status, instance');
    await runLedgerHistory(database, seededRandom(seed));
  });
});

async function run(t: TestContext, count: number, history: (seed: number) => Promise<void>): Promise<void> {
  const { seed, numRuns } = seededRuns(t, count);
  for (let index = 0; index < numRuns; index++) await history(seed + index);
}
