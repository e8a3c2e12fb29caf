/** Writes of a TPP with fields about notifications, as the stages of the notifications receive them. */

import assert from 'node:assert/strict';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { createMatcher } from '../../../src/pis/operations.ts';
import { namesAsIdentities } from '../../../src/request/identities.ts';
import type { RoutedRequest } from '../../../src/request/messages.ts';
import { environmentOf } from '../../kit/environment.ts';

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

type RequestLine = readonly [method: string, path: string];

const transfers = '/berlingroup/v1/payments/sepa-credit-transfers';

export const initiation: RequestLine = ['POST', transfers];
export const cancellation: RequestLine = ['DELETE', `${transfers}/payment`];
export const authorisation: RequestLine = ['POST', `${transfers}/payment/authorisations`];

export const uri: HeaderFields[number] = ['TPP-Notification-URI', 'https://tpp.example/payments/1'];
export const preferred: HeaderFields[number] = ['TPP-Notification-Content-Preferred', 'status=LAST'];

export function requestOf([method, path]: RequestLine, ...headers: HeaderFields): RoutedRequest {
  const matched = match(method, path);
  assert.ok(matched.kind === 'operation');
  return {
    operation: matched.operation,
    client: { name: 'client', tenant: 'tenant', environments: ['sandbox'] },
    requestId: '1',
    headers: [['Authorization', 'Bearer token'], ...headers],
    body: Buffer.alloc(0),
    arrivedAtMs: 0,
    deadlineAtMs: 1_000,
    identities: namesAsIdentities,
    environment: environmentOf(),
  };
}
