/** What becomes of a payment that is left alone, and of one that is not. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  defaultTimings,
  type Payment,
  scaStatusAt,
  statusAt,
} from '../../../src/simulated-bank/payment-lifecycle.ts';

const authorisation = { id: 'sca-1', startedAt: 0, approach: 'REDIRECT' } as const;
const payment: Payment = {
  id: 'bank-1',
  service: 'payments',
  product: 'sepa-credit-transfers',
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  createdAt: 0,
  contentType: 'application/json',
  order: Buffer.from('{}'),
  authorisations: [authorisation],
  cancellations: [],
  cancellationRequested: false,
  credentialChecks: 0,
};
const statusesOf = (one: Payment, moments: readonly number[]) =>
  moments.map((now) => statusAt(one, now, defaultTimings));

describe('the status of a simulated payment', () => {
  test('goes from RCVD to ACCC', () => {
    const statuses = statusesOf(payment, [0, 4_999, 5_000, 10_000, 20_000, 65_000]);

    assert.deepEqual(statuses, ['RCVD', 'RCVD', 'ACTC', 'ACSP', 'ACSC', 'ACCC']);
  });

  test('of an instant product is ACCC as soon as it is settled', () => {
    const instant = { ...payment, product: 'instant-sepa-credit-transfers' };

    assert.deepEqual(statusesOf(instant, [19_999, 20_000]), ['ACSP', 'ACCC']);
  });

  test('of a standing order stays ACCP', () => {
    const standing = { ...payment, service: 'periodic-payments' };

    assert.deepEqual(statusesOf(standing, [5_000, 10_000, 9_000_000]), ['ACTC', 'ACCP', 'ACCP']);
  });

  test('becomes RJCT without an authorisation', () => {
    const forgotten = { ...payment, authorisations: [] };

    assert.deepEqual(statusesOf(forgotten, [899_999, 900_000]), ['RCVD', 'RJCT']);
  });

  test('stays CANC after a cancellation', () => {
    const cancelled = { ...payment, cancelledAt: 1_000 };

    assert.deepEqual(statusesOf(cancelled, [999, 1_000, 9_000_000]), ['RCVD', 'CANC', 'CANC']);
  });

  test('does not become CANC by an authorisation after the settlement', () => {
    const late = { ...authorisation, id: 'sca-2', startedAt: 16_000 };
    const settled = { ...payment, cancellations: [late] };

    assert.deepEqual(statusesOf(settled, [20_000, 21_000]), ['ACSC', 'ACSC']);
    assert.equal(scaStatusAt(settled, late, 21_000, defaultTimings), 'failed');
  });

  test('is the forced status, if one is set', () => {
    assert.deepEqual(statusesOf({ ...payment, forcedStatus: 'ACCT' }, [0, 9_000_000]), ['ACCT', 'ACCT']);
  });
});

test('a simulated authorisation fails if its payment fails', () => {
  const cancelled = { ...payment, cancelledAt: 1_000 };

  assert.equal(scaStatusAt(cancelled, authorisation, 500, defaultTimings), 'received');
  assert.equal(scaStatusAt(cancelled, authorisation, 1_000, defaultTimings), 'failed');
  assert.equal(scaStatusAt(cancelled, authorisation, 9_000, defaultTimings), 'failed');
});
