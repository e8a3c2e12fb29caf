import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createClaim } from '../../../src/idempotency/claim.ts';
import { createLastingLedger } from '../../../src/idempotency/create-ledger.ts';
import type { Claimed } from '../../../src/idempotency/entry.ts';
import { createMemoryState } from '../../../src/state/memory.ts';

const entry = {
  v: 1,
  step: 'claimed',
  fingerprint: 'a-fingerprint',
  attempt: 'an-attempt',
  holder: 'a-holder',
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  operation: 'initiatePayment',
  path: '/berlingroup/v1/payments/sepa-credit-transfers',
  paymentService: 'payments',
  tenant: 'shop',
  since: 0,
} as const satisfies Claimed;

describe('a claim', () => {
  test('that is in doubt at the deadline is told of once, though the call fails later as well', async () => {
    const logged: string[] = [];
    const ledger = createLastingLedger(
      createMemoryState(),
      (_level, message) => logged.push(message),
      () => {},
    );
    await ledger.entries.begin('an-id', entry, 60_000);
    const claim = createClaim(ledger, { id: 'an-id', entry, listenMs: 60_000, windowMs: 60_000 });
    await claim.pass('sandbox');
    await claim.doubt('OUTCOME_UNKNOWN: The bank did not answer in time.');
    await claim.doubt('UPSTREAM_MALFORMED: The bank broke its answer off.');
    assert.deepEqual(logged, ['a payment is in doubt']);
  });
});
