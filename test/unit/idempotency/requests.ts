/** Requests as the idempotency stage receives them. */

import assert from 'node:assert/strict';
import { createIdentifyRequest } from '../../../src/idempotency/request-identity.ts';
import { createMatcher, type Method, optionalOperations } from '../../../src/pis/operations.ts';
import type { Client, PisRequest } from '../../../src/request/messages.ts';
import type { Field } from '../../kit/fields.ts';

/** Defaults: tenant `shop`, and a deadline in ten seconds. */
export interface RequestOptions {
  readonly tenant?: string;
  readonly requestId?: string;
  readonly body?: string | undefined;
  readonly payment?: string;
  readonly service?: string;
  readonly named?: string;
  readonly environments?: readonly string[];
  readonly headers?: readonly Field[];
  readonly withinMs?: number;
}

export const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';

export const initiation = (options: RequestOptions = {}) => requestOf('POST', '', options);
export const cancellation = ({ payment = 'a-payment', ...options }: RequestOptions = {}) =>
  requestOf('DELETE', `/${payment}`, options);
export const authorisation = ({ payment = 'a-payment', ...options }: RequestOptions = {}) =>
  requestOf('POST', `/${payment}/authorisations`, options);
export const authorisationUpdate = ({ payment = 'a-payment', ...options }: RequestOptions = {}) =>
  requestOf('PUT', `/${payment}/authorisations/an-authorisation`, options);
export const paymentUpdate = ({ payment = 'a-payment', ...options }: RequestOptions = {}) =>
  requestOf('PUT', `/${payment}`, options);
export const authorisationRead = () => requestOf('GET', '/a-payment/authorisations/an-authorisation', {});
export const statusRead = (options: RequestOptions = {}) => requestOf('GET', '/a-payment/status', options);

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
  alsoOffer: optionalOperations,
});

function requestOf(method: Method, tail: string, options: RequestOptions): PisRequest {
  const { service = 'payments', body = '', headers = json, named, withinMs = 10_000 } = options;
  const found = match(method, `/berlingroup/v1/${service}/sepa-credit-transfers${tail}`);
  assert.ok(found.kind === 'operation');
  const arrivedAtMs = performance.now();
  return {
    operation: found.operation,
    client: clientOf(options),
    requestId: options.requestId ?? requestId,
    ...(named !== undefined && { requestedEnvironment: named }),
    headers,
    body: Buffer.from(body),
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + withinMs,
  };
}

const json: readonly Field[] = [['Content-Type', 'application/json']];

function clientOf({ tenant = 'shop', environments = ['sandbox'] }: RequestOptions): Client {
  return { name: `${tenant}-1`, tenant, environments };
}

/** As without an encryption key. */
export const identityOf = createIdentifyRequest();
