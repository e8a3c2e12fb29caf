/** The promise "never pay twice", checked in random simulations of whole deployments. */

import { describe, test } from 'node:test';
import fc from 'fast-check';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { simulationCommands } from './simulation/commands.ts';
import { checkQuiescentState, runToQuiescence } from './simulation/invariants.ts';
import { createSimulation } from './simulation/simulation.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 600);
const seed = process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) };

describe('a random sequence of payments, repeats, crashes, suspensions, state failures and resolutions', () => {
  test('makes at most one payment per X-Request-ID, and every outcome is reported or listed as in doubt', async (t) => {
    const property = fc.asyncProperty(simulationCommands, async (commands) => {
      const simulation = createSimulation(2);
      try {
        await fc.asyncModelRun(() => ({ model: {}, real: simulation }), commands);
        await runToQuiescence(simulation);
        await checkQuiescentState(simulation);
      } finally {
        simulation.time.restore();
      }
    });
    await fc.assert(property, { ...seededRuns(t, runs), ...seed });
  });
});
