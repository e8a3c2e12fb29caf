/** Whatever happens in whatever order: nothing is paid twice, and what is not known is called unknown. */

import { describe, test } from 'node:test';
import fc from 'fast-check';
import { seeded } from '../../kit/seeded.ts';
import { simulationCommands } from './simulation/commands.ts';
import { checkQuiescentState, runToQuiescence } from './simulation/invariants.ts';
import { createSimulation } from './simulation/simulation.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 600);
const seed = process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) };

describe('in any history of initiations, repeats, pauses, crashes, outages, resolutions and late answers', () => {
  test('an X-Request-ID makes one payment at most, and what became of it is told, or in doubt and listed', async (t) => {
    const history = fc.asyncProperty(simulationCommands, async (commands) => {
      const world = createSimulation(2);
      try {
        await fc.asyncModelRun(() => ({ model: {}, real: world }), commands);
        await runToQuiescence(world);
        await checkQuiescentState(world);
      } finally {
        world.clocks.restore();
      }
    });
    await fc.assert(history, { ...seeded(t, runs), ...seed });
  });
});
