/** The promise "never pay twice", checked in random simulations of whole deployments. `FUZZ_RUNS` sets their number. */

import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { within } from '../../kit/within.ts';
import { commandsWithLosses, simulationCommands } from './simulation/commands.ts';
import { cluster, oneServer } from './simulation/forgetful-state.ts';
import { checkQuiescentState, runToQuiescence } from './simulation/invariants.ts';
import { createSimulation } from './simulation/simulation.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 100);
/** A slow or busy machine makes fewer runs than wanted, unless their number was set. Milliseconds. */
const maxMs = process.env.FUZZ_RUNS === undefined ? 20_000 : Number.POSITIVE_INFINITY;
/** Far more than any history takes. It passes in real time: fake time stands still while a history waits for nothing. */
const maxHistoryMs = 60_000;

async function check(t: TestContext, commands: typeof simulationCommands): Promise<void> {
  const startedAtMs = performance.now();
  let completeRuns = 0;
  const property = fc.asyncProperty(
    commands,
    fc.constantFrom(oneServer, cluster),
    async (sequence, partitions) => {
      if (performance.now() - startedAtMs > maxMs) return;
      const simulation = createSimulation(2, partitions);
      const history = async () => {
        await fc.asyncModelRun(() => ({ model: {}, real: simulation }), sequence);
        await runToQuiescence(simulation);
        await checkQuiescentState(simulation);
      };
      try {
        await within(maxHistoryMs, 'the end of the history', history());
      } finally {
        simulation.time.restore();
      }
      completeRuns += 1;
    },
  );
  await fc.assert(property, seededRuns(t, runs));
  t.diagnostic(`${completeRuns} runs`);
}

describe('a random sequence of payments, repeats, crashes, suspensions, state failures and resolutions', () => {
  test('makes at most one payment per X-Request-ID, and every outcome is reported or listed as in doubt', (t) =>
    check(t, simulationCommands));

  test('makes at most one payment per X-Request-ID although the state loses its last changes, a partition or everything', (t) =>
    check(t, commandsWithLosses));
});
