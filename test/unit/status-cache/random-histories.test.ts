/** Monotonic reads and read-your-writes in random histories. */

import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createMemoryState } from '../../../src/state/memory.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { createCacheInstance } from './cache-instance.ts';
import { createScheduledBank, randomHistories, runHistory, withScheduledState } from './random-histories.ts';

const never = () => 'not' as const;
const readAffinity = (scheduler: fc.Scheduler) => () =>
  scheduler.schedule(Promise.resolve(), 'read the affinity');

describe('random histories of reads, cancellations, authorisations and status changes at the bank', () => {
  test('never serves a TPP a status older than one it has seen or than its own write, on two instances', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), randomHistories(2), async (scheduler, workers) => {
        const { bank, changeStatus } = createScheduledBank(scheduler);
        const state = createMemoryState();
        const instances = [0, 1].map(() =>
          createCacheInstance(
            withScheduledState(state, scheduler, never),
            bank,
            {},
            undefined,
            readAffinity(scheduler),
          ),
        );
        await runHistory(scheduler, instances, changeStatus, workers);
      }),
      seededRuns(t, 100),
    );
  });

  for (const ifStateFails of ['refuse', 'allow'] as const) {
    test(`never serves a TPP an older status while the state fails at random (ifStateFails: ${ifStateFails})`, async (t) => {
      const failures = fc.infiniteStream(
        fc.oneof(
          { weight: 6, arbitrary: fc.constant('not' as const) },
          { weight: 1, arbitrary: fc.constantFrom('before' as const, 'after' as const) },
        ),
      );
      await fc.assert(
        fc.asyncProperty(fc.scheduler(), randomHistories(1), failures, async (scheduler, workers, stream) => {
          const { bank, changeStatus } = createScheduledBank(scheduler);
          const fails = () => stream.next().value ?? never();
          const state = withScheduledState(createMemoryState(), scheduler, fails);
          const sections = { idempotency: { ifStateFails } };
          const instances = [createCacheInstance(state, bank, sections, undefined, readAffinity(scheduler))];
          await runHistory(scheduler, instances, changeStatus, workers);
        }),
        seededRuns(t, 50),
      );
    });
  }
});
