import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Entry, statusPathOf } from '../../../src/idempotency/entry.ts';

const transfers = '/berlingroup/v1/payments/sepa-credit-transfers';
const entry = {
  v: 1,
  step: 'happened',
  fingerprint: 'a-fingerprint',
  attempt: 'an-attempt',
  holder: 'a-holder',
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  paymentService: 'payments',
  tenant: 'shop',
  since: 0,
  environment: 'sandbox',
  listenedUntil: 0,
} as const;

describe('the status of a payment stands below it, whatever its id looks like', () => {
  for (const paymentId of ['1234-wertiq-983', 'v1', 'p', 'a', 'sepa-credit-transfers'])
    for (const [operation, path] of [
      ['initiatePayment', transfers],
      ['cancelPayment', `${transfers}/${paymentId}`],
      ['startAuthorisation', `${transfers}/${paymentId}/authorisations`],
    ] as const)
      test(`${paymentId}, after ${operation}`, () => {
        const happened: Entry = { ...entry, operation, path, paymentId };
        assert.equal(statusPathOf(happened), `${transfers}/${paymentId}/status`);
      });
});
