/** Environments, requests and answers as the contract guard sees them. */

import assert from 'node:assert/strict';
import { createJudge, type GuardedEnvironment } from '../../../src/contract-guard/guarded-environments.ts';
import { createMatcher } from '../../../src/pis/operations.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import { environmentOf } from '../../kit/environment.ts';

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

/** Of the environment `sandbox`. */
export const judge = (hash: string, standardVersion: string, isOwn = true) =>
  createJudge('sandbox', { hash, options: { standardVersion } }, isOwn);

export const environment = (changes: Partial<GuardedEnvironment> = {}): GuardedEnvironment => ({
  name: 'sandbox',
  standardVersion: '1.3.11',
  requests: 'report',
  responses: 'report',
  sample: 1,
  isSampled: () => true,
  own: judge('hash-1', '1.3.11'),
  judges: [judge('hash-1', '1.3.11')],
  satisfiesAll: undefined,
  requiresHeaders: false,
  missingHeader: () => undefined,
  consumedHeadersOf: () => [],
  prepare: async () => {},
  isUnusable: () => false,
  ...changes,
});

export function initiation(body = '{}', changes: Partial<RoutedRequest> = {}): RoutedRequest {
  const found = match('POST', '/berlingroup/v1/payments/sepa-credit-transfers');
  assert.ok(found.kind === 'operation');
  return {
    operation: found.operation,
    client: { name: 'shop-1', tenant: 'shop', environments: ['sandbox'] },
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    headers: [['Content-Type', 'application/json']],
    body: Buffer.from(body),
    arrivedAtMs: performance.now(),
    deadlineAtMs: performance.now() + 60_000,
    environment: environmentOf(),
    ...changes,
  };
}

export const answer = (changes: Partial<PisResponse> = {}): PisResponse => ({
  status: 201,
  headers: [['Content-Type', 'application/json']],
  body: Buffer.from('{}'),
  servedFrom: 'bank',
  environment: 'sandbox',
  ...changes,
});
