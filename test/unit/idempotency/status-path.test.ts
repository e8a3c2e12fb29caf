import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Entry, statusPathOf } from '../../../src/idempotency/entry.ts';
import { claimed, sent } from './an-entry.ts';

const transfers = claimed.path;
describe('the status of a payment stands below it, whatever its id looks like', () => {
  for (const paymentId of ['1234-wertiq-983', 'v1', 'p', 'a', 'sepa-credit-transfers'])
    for (const [operation, path] of [
      ['initiatePayment', transfers],
      ['cancelPayment', `${transfers}/${paymentId}`],
      ['startAuthorisation', `${transfers}/${paymentId}/authorisations`],
    ] as const)
      test(`${paymentId}, after ${operation}`, () => {
        const happened: Entry = { ...claimed, ...sent, step: 'happened', operation, path, paymentId };
        assert.equal(statusPathOf(happened), `${transfers}/${paymentId}/status`);
      });
});
