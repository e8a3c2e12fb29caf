/** Random simulations of whole deployments, which run in a thread of their own. */

import fc from 'fast-check';
import { within } from '../../../kit/within.ts';
import { commandsWithLosses, simulationCommands } from './commands.ts';
import { cluster, oneServer } from './forgetful-state.ts';
import { checkQuiescentState, runToQuiescence } from './invariants.ts';
import { createSimulation } from './simulation.ts';

/** Far more than any history takes. It passes in real time: fake time stands still while a history waits for nothing. */
const maxHistoryMs = 60_000;

/**
 * Fails with the commands of a deployment that breaks an invariant.
 *
 * @param state whether it may lose what it has confirmed
 * @param maxMs after this time, the remaining runs are omitted
 * @returns the number of complete runs
 */
export async function checkRandomDeployments(
  state: 'reliable' | 'forgetful',
  settings: { readonly seed: number; readonly numRuns: number },
  maxMs: number,
): Promise<number> {
  const startedAtMs = performance.now();
  let completeRuns = 0;
  const property = fc.asyncProperty(
    state === 'reliable' ? simulationCommands : commandsWithLosses,
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
  await fc.assert(property, settings);
  return completeRuns;
}
