/** Requests and responses for the tests of the rewriting stage. */

import assert from 'node:assert/strict';
import { createMatcher } from '../../../src/pis/operations.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import { createMapLinks } from '../../../src/rewriting/link-mapper.ts';
import { environmentOf } from '../../kit/environment.ts';

export const environment = environmentOf({ origin: 'https://api.bank.example', basePath: '/psd2' });

export const publicUrl = 'https://gateway.example';

export const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: ['payments', 'bulk-payments', 'periodic-payments'],
  paymentProducts: 'any',
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
});

/** The mappers of a gateway in front of the bank, and the relations whose links it could not rewrite. */
export function createMapper(changes: Partial<Parameters<typeof createMapLinks>[0]> = {}) {
  const kept: string[] = [];
  const mapLinksOf = createMapLinks({
    publicUrl,
    segment: 'berlingroup',
    match,
    authorisationTypes: ['authorisations', 'cancellation-authorisations'],
    hasAnyService: false,
    onKept: (_, relation) => kept.push(relation),
    ...changes,
  });
  return { kept, mapLinksOf };
}

/** A routed GET of a path, or a POST if the path has no GET. */
export function routedRequest(path: string, changes: Partial<RoutedRequest> = {}): RoutedRequest {
  const found = [match('GET', path), match('POST', path)].find(({ kind }) => kind === 'operation');
  assert.ok(found?.kind === 'operation', path);
  return {
    operation: found.operation,
    client: { name: 'shop', tenant: 'shop', environments: ['sandbox'] },
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    headers: [],
    body: Buffer.alloc(0),
    arrivedAtMs: 0,
    deadlineAtMs: 1000,
    environment,
    ...changes,
  };
}

export function bankResponse(headers: PisResponse['headers'], body: Buffer | string = ''): PisResponse {
  const bytes = Buffer.from(body);
  return { status: 200, headers, body: bytes, servedFrom: 'bank', environment: 'sandbox', upstreamMs: 1 };
}
