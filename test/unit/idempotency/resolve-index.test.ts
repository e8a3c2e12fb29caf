import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLastingLedger } from '../../../src/idempotency/create-ledger.ts';
import { nameOf } from '../../../src/idempotency/open-entries.ts';
import { createResolve } from '../../../src/idempotency/resolve.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { claimed, sent } from './an-entry.ts';

const name = nameOf('an-id', claimed.attempt);
const doubt = {
  ...claimed,
  ...sent,
  step: 'in-doubt',
  why: 'OUTCOME_UNKNOWN: The bank did not answer in time.',
} as const;

describe('a doubt that operators resolve', () => {
  test('is counted no longer, although the state did not take it out of the index at once', async () => {
    const state = createFailingState();
    let count = 0;
    const ledger = createLastingLedger(
      state,
      () => {},
      (doubts) => {
        count = doubts;
      },
    );
    const resolve = createResolve({
      ...ledger,
      affinity: { learn: async () => {} },
      audit: { record: async () => {} },
      windowMs: () => 60_000,
    });
    await ledger.entries.begin('an-id', doubt, 60_000);
    await ledger.open.add(name);
    await ledger.tidy();
    assert.equal(count, 1);

    state.fail('remove');
    await resolve({ id: name, who: 'ann', outcome: 'did-not-happen', reason: 'the bank said so' });
    state.heal();
    for (let beats = 0; beats < 5; beats++) await ledger.tidy();
    assert.equal(count, 0);
  });
});
