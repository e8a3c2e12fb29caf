import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createClaim } from '../../../src/idempotency/claim.ts';
import { createLastingLedger } from '../../../src/idempotency/create-ledger.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { claimed } from './an-entry.ts';

describe('a claim', () => {
  test('that is in doubt at the deadline is told of once, though the call fails later as well', async () => {
    const logged: string[] = [];
    const ledger = createLastingLedger(
      createMemoryState(),
      (_level, message) => logged.push(message),
      () => {},
    );
    await ledger.entries.begin('an-id', claimed, 60_000);
    const claim = createClaim(ledger, { id: 'an-id', entry: claimed, listenMs: 60_000, windowMs: 60_000 });
    await claim.pass('sandbox');
    await claim.doubt('OUTCOME_UNKNOWN: The bank did not answer in time.');
    await claim.doubt('UPSTREAM_MALFORMED: The bank broke its answer off.');
    assert.deepEqual(logged, ['a payment is in doubt']);
  });
});
