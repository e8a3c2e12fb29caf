/** The operation of a status read. */

import assert from 'node:assert/strict';
import { createMatcher, type Operation } from '../../../src/pis/operations.ts';

const matched = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
})('GET', '/berlingroup/v1/payments/sepa-credit-transfers/1/status');
assert.ok(matched.kind === 'operation');

export const operation: Operation = matched.operation;
