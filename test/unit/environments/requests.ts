/** Requests as the choice of an environment sees them, and what it comes to. */

import assert from 'node:assert/strict';
import { createMatcher, type Method } from '../../../src/pis/operations.ts';
import { type ErrorCode, GatewayError } from '../../../src/request/errors.ts';
import type { Client, PisRequest, PisResponse } from '../../../src/request/messages.ts';

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

/** A client of the tenant `shop` that may use both sides. */
export const shop: Client = { name: 'shop-1', tenant: 'shop', environments: ['sandbox', 'production'] };

/** A client of another tenant. */
export const rival: Client = { name: 'rival-1', tenant: 'rival', environments: ['sandbox', 'production'] };

interface RequestOptions {
  readonly client?: Client;
  /** What `Penstock-Environment` says. */
  readonly named?: string | undefined;
}

export const initiation = (asked: RequestOptions = {}, service = 'payments') =>
  requestOf('POST', `${service}/sepa-credit-transfers`, asked);
export const statusRead = (asked: RequestOptions = {}) =>
  requestOf('GET', 'payments/sepa-credit-transfers/a-payment/status', asked);
export const paymentRead = (asked: RequestOptions = {}) =>
  requestOf('GET', 'payments/sepa-credit-transfers/a-payment', asked);
export const cancellation = (asked: RequestOptions = {}) =>
  requestOf('DELETE', 'payments/sepa-credit-transfers/a-payment', asked);
export const authorisation = (asked: RequestOptions = {}) =>
  requestOf('POST', 'payments/sepa-credit-transfers/a-payment/authorisations', asked);

function requestOf(method: Method, path: string, { client = shop, named }: RequestOptions): PisRequest {
  const found = match(method, `/berlingroup/v1/${path}`);
  assert.ok(found.kind === 'operation');
  return {
    operation: found.operation,
    client,
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    ...(named !== undefined && { requestedEnvironment: named }),
    headers: [],
    body: Buffer.alloc(0),
    arrivedAtMs: 0,
    deadlineAtMs: 1_000,
  };
}

/** An answer of a side of the bank. */
export function bankResponse(environment: string, body: unknown = '', status = 201): PisResponse {
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return { status, headers: [], body: bytes, servedFrom: 'bank', environment, upstreamMs: 1 };
}

/** The error that comes out, or fails if none does. */
export async function errorOf(act: () => unknown): Promise<GatewayError> {
  try {
    await act();
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  throw new assert.AssertionError({ message: 'no error came out' });
}

/** What a caller can tell one error from another by. */
export const visibleParts = ({
  code,
  message,
  field,
  headers,
  tppCode,
  proxyError,
  environment,
}: GatewayError) => ({
  code,
  message,
  field,
  headers,
  tppCode,
  proxyError,
  environment,
});

/** Where a request goes, or the code of what refuses it. */
export function routedTo(choose: () => string): string | ErrorCode {
  try {
    return choose();
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown.code;
  }
}
