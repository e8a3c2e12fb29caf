/** The cache is never behind what was shown, in random histories. `FUZZ_RUNS` and `FUZZ_SEED` set runs and seed. */

import { after, before, describe, mock, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { createMemoryState } from '../../../src/state/memory.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { bankAnswers, orderedHistories, runOrderedHistory } from './ordered-histories.ts';
import { withScheduledState } from './random-histories.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 100);
const settings = (t: TestContext) => seededRuns(t, runs);

describe('random histories of reads and writes of a payment whose status goes forward and back', () => {
  before(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }));
  after(() => mock.timers.reset());

  test('serves nothing from the cache, shared or stale that began before a different answer that a TPP has received, on two instances', async (t) => {
    const property = fc.asyncProperty(
      fc.scheduler(),
      orderedHistories(2),
      bankAnswers,
      async (scheduler, workers, answers) => {
        const stateOf = (shared: ReturnType<typeof createMemoryState>) =>
          withScheduledState(shared, scheduler, () => 'not');
        const options = { answers, scheduler, instances: 2, stateOf, createState: createMemoryState };
        await runOrderedHistory(options, workers);
      },
    );
    await fc.assert(property, settings(t));
  });

  test('serves nothing from the cache, shared or stale that began before a different answer, while the state of one instance fails at random', async (t) => {
    const failures = fc.infiniteStream(
      fc.oneof(
        { weight: 6, arbitrary: fc.constant('not' as const) },
        { weight: 1, arbitrary: fc.constantFrom('before' as const, 'after' as const) },
      ),
    );
    const property = fc.asyncProperty(
      fc.scheduler(),
      orderedHistories(1),
      bankAnswers,
      failures,
      async (scheduler, workers, answers, stream) => {
        const stateOf = (shared: ReturnType<typeof createMemoryState>) =>
          withScheduledState(shared, scheduler, () => stream.next().value ?? 'not');
        const options = { answers, scheduler, instances: 1, stateOf, createState: createMemoryState };
        await runOrderedHistory(options, workers);
      },
    );
    await fc.assert(property, settings(t));
  });
});
