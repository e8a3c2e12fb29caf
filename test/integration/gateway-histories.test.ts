/** Random histories of whole gateways. `FUZZ_RUNS` and `FUZZ_SEED` set runs and seed. */

import '../kit/untracked-promises.ts'; // before the first use of node:test
import { type TestContext, test } from 'node:test';
import { migrate } from '../../src/store/migrations.ts';
import { inMemory, openSqlite } from '../../src/store/sqlite.ts';
import { runGatewayHistory } from '../kit/gateway-history.ts';
import { startHistoryPostgres } from '../kit/history-postgres.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { seededRandom } from '../kit/random.ts';
import { seededRuns } from '../kit/seeded-runs.ts';
import { createSimulatedProcesses, installSimulatedClocks } from '../kit/simulated-processes.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 20);

test('SQLite: whole gateways execute each write once, and lose no outcome', async (t) => {
  t.after(installSimulatedClocks());
  await run(t, runs, async (seed) => {
    const random = seededRandom(seed);
    const processes = createSimulatedProcesses();
    const instances = 1 + Math.floor(random() ** 2 * 3); // seldom three
    let offsetMs = 0;
    const isAlone = instances === 1;
    const wall = isAlone ? Date.now : () => processes.now() + offsetMs;
    const database = openSqlite(inMemory, wall);
    await migrate(database);
    await runGatewayHistory({
      ...{ processes, random, instances },
      store: {
        dialect: isAlone ? 'sqlite' : 'postgres', // SQLite executes the statements of several instances, too
        connect: () => database,
        read: (sql) => database.query(sql),
        jump(ms) {
          offsetMs += ms;
        },
        networkFaults: [],
        heal() {},
      },
    });
    await database.close();
  });
});

test('PostgreSQL: whole gateways execute each write once, and lose no outcome', {
  skip: skipWithoutPostgres,
}, async (t) => {
  t.after(installSimulatedClocks());
  const postgres = await startHistoryPostgres(t);
  await run(t, Math.ceil(runs / 16), async (seed) => {
    const random = seededRandom(seed);
    const processes = createSimulatedProcesses();
    const store = await postgres.newStore(processes);
    await runGatewayHistory({ processes, random, instances: 2 + Math.floor(random() * 2), store });
    await store.close();
  });
});

async function run(t: TestContext, count: number, history: (seed: number) => Promise<void>): Promise<void> {
  const { seed, numRuns } = seededRuns(t, count);
  for (let index = 0; index < numRuns; index++)
    try {
      await history(seed + index);
    } catch (cause) {
      throw new Error(`FUZZ_SEED=${seed + index} FUZZ_RUNS=1 repeats it`, { cause });
    }
}
