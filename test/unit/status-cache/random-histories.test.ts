/** Whatever happens in whatever order: time never runs backwards for a TPP. */

import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createMemoryState } from '../../../src/state/memory.ts';
import { seeded } from '../../kit/seeded.ts';
import { createCacheInstance } from './cache-instance.ts';
import { createScheduledBank, randomHistories, runHistory, withScheduledState } from './random-histories.ts';

const always = () => 'not' as const;

describe('in any history of reads, cancellations, authorisations and changes at the bank', () => {
  test('no TPP sees a status older than one it has seen, or one from before its own write, on two instances', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), randomHistories(2), async (scheduler, workers) => {
        const { bank, moveOn } = createScheduledBank(scheduler);
        const state = createMemoryState();
        const instances = [0, 1].map(() =>
          createCacheInstance(withScheduledState(state, scheduler, always), bank),
        );
        await runHistory(scheduler, instances, moveOn, workers);
      }),
      seeded(t, 200),
    );
  });

  for (const ifStateFails of ['refuse', 'allow'] as const) {
    test(`nor if the state fails now and then on its one instance, which may then ${ifStateFails} writes`, async (t) => {
      const failures = fc.infiniteStream(
        fc.oneof(
          { weight: 6, arbitrary: fc.constant('not' as const) },
          { weight: 1, arbitrary: fc.constantFrom('before' as const, 'after' as const) },
        ),
      );
      await fc.assert(
        fc.asyncProperty(fc.scheduler(), randomHistories(1), failures, async (scheduler, workers, stream) => {
          const { bank, moveOn } = createScheduledBank(scheduler);
          const fails = () => stream.next().value ?? always();
          const state = withScheduledState(createMemoryState(), scheduler, fails);
          const instances = [createCacheInstance(state, bank, { idempotency: { ifStateFails } })];
          await runHistory(scheduler, instances, moveOn, workers);
        }),
        seeded(t, 100),
      );
    });
  }
});
