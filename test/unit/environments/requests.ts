/** Requests and responses as the chooseEnvironment stage sees them. */

import assert from 'node:assert/strict';
import { createMatcher, type Method } from '../../../src/pis/operations.ts';
import { type ErrorCode, GatewayError } from '../../../src/request/errors.ts';
import type { Client, PisRequest, PisResponse } from '../../../src/request/messages.ts';
import { withMeaning } from '../../kit/meaning.ts';

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

export const shop: Client = { name: 'shop-1', tenant: 'shop', environments: ['sandbox', 'production'] };

export const rival: Client = { name: 'rival-1', tenant: 'rival', environments: ['sandbox', 'production'] };

interface RequestOptions {
  readonly client?: Client;
  /** The value of `Penstock-Environment`. */
  readonly named?: string | undefined;
}

export const initiation = (options: RequestOptions = {}, service = 'payments') =>
  requestOf('POST', `${service}/sepa-credit-transfers`, options);
export const statusRead = (options: RequestOptions = {}) =>
  requestOf('GET', 'payments/sepa-credit-transfers/a-payment/status', options);
export const paymentRead = (options: RequestOptions = {}) =>
  requestOf('GET', 'payments/sepa-credit-transfers/a-payment', options);
export const cancellation = (options: RequestOptions = {}) =>
  requestOf('DELETE', 'payments/sepa-credit-transfers/a-payment', options);
export const authorisation = (options: RequestOptions = {}) =>
  requestOf('POST', 'payments/sepa-credit-transfers/a-payment/authorisations', options);

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

/** A response to an initiation. */
export function bankResponse(environment: string, body: unknown = '', status = 201): PisResponse {
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return withMeaning(initiation().operation, {
    ...{ status, headers: [], body: bytes },
    ...{ servedFrom: 'bank', environment, upstreamMs: 1 },
  });
}

/** The GatewayError that is thrown; fails if there is none. */
export async function errorOf(act: () => unknown): Promise<GatewayError> {
  try {
    await act();
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  throw new assert.AssertionError({ message: 'no error was thrown' });
}

/** Everything in an error that a TPP can see. */
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

/** The chosen environment, or the code of the error. */
export function routedTo(choose: () => string): string | ErrorCode {
  try {
    return choose();
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown.code;
  }
}
