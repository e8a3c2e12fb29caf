/** Checks of random histories, which run in a thread of their own. Each fails with a history that breaks its rule. */

import { mock } from 'node:test';
import fc from 'fast-check';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createCacheInstance } from './cache-instance.ts';
import { bankAnswers, orderedHistories, runOrderedHistory } from './ordered-histories.ts';
import { createScheduledBank, randomHistories, runHistory, withScheduledState } from './random-histories.ts';

interface Runs {
  readonly seed: number;
  readonly numRuns: number;
}

const never = () => 'not' as const;
const readAffinity = (scheduler: fc.Scheduler) => () =>
  scheduler.schedule(Promise.resolve(), 'read the affinity');

/** As an instance has it whose Redis fails. */
const withOwnPlace = (state: State) => ({ ...state, own: createMemoryState().keyValues });

/** Whether an operation of the state fails, before or after its effect. */
const failures = fc.infiniteStream(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant('not' as const) },
    { weight: 1, arbitrary: fc.constantFrom('before' as const, 'after' as const) },
  ),
);

export async function checkMonotonicReads(runs: Runs): Promise<void> {
  const property = fc.asyncProperty(fc.scheduler(), randomHistories(2), async (scheduler, workers) => {
    const { bank, changeStatus } = createScheduledBank(scheduler);
    const shared = createMemoryState();
    const instances = [0, 1].map(() => {
      const state = withScheduledState(shared, scheduler, never);
      return createCacheInstance(state, bank, {}, undefined, readAffinity(scheduler));
    });
    await runHistory(scheduler, instances, changeStatus, workers);
  });
  await fc.assert(property, runs);
}

export async function checkMonotonicReadsWithFailures(runs: Runs): Promise<void> {
  const property = fc.asyncProperty(
    fc.scheduler(),
    randomHistories(1),
    failures,
    async (scheduler, workers, stream) => {
      const { bank, changeStatus } = createScheduledBank(scheduler);
      const fails = () => stream.next().value ?? never();
      const state = withOwnPlace(withScheduledState(createMemoryState(), scheduler, fails));
      const instances = [createCacheInstance(state, bank, {}, undefined, readAffinity(scheduler))];
      await runHistory(scheduler, instances, changeStatus, workers);
    },
  );
  await fc.assert(property, runs);
}

/** @param state whether operations of the state fail at random, with one instance; otherwise there are two */
export async function checkNeverBehind(state: 'reliable' | 'failing', runs: Runs): Promise<void> {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }); // until this thread ends
  const instances = state === 'reliable' ? 2 : 1;
  const property = fc.asyncProperty(
    fc.scheduler(),
    orderedHistories(instances),
    bankAnswers,
    failures,
    async (scheduler, workers, answers, stream) => {
      const fails = () => (state === 'reliable' ? never() : (stream.next().value ?? never()));
      const scheduled = (shared: State) => withScheduledState(shared, scheduler, fails);
      const stateOf = (shared: State) =>
        state === 'reliable' ? scheduled(shared) : withOwnPlace(scheduled(shared));
      const options = { answers, scheduler, instances, stateOf, createState: createMemoryState };
      await runOrderedHistory(options, workers);
    },
  );
  await fc.assert(property, runs);
}
