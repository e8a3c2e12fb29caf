/** Requests as the duplicates' guard sees them. */

import assert from 'node:assert/strict';
import { createMatcher, type Method } from '../../../src/pis/operations.ts';
import type { Client, PisRequest } from '../../../src/request/messages.ts';
import type { Field } from '../../kit/fields.ts';

/** What a request is made of; one of the tenant `shop` that may take ten seconds, unless told otherwise. */
export interface RequestOptions {
  readonly tenant?: string;
  readonly requestId?: string;
  readonly body?: string;
  readonly payment?: string;
  readonly service?: string;
  readonly named?: string;
  readonly environments?: readonly string[];
  readonly headers?: readonly Field[];
  readonly withinMs?: number;
}

export const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';

export const initiation = (asking: RequestOptions = {}) => requestOf('POST', '', asking);
export const cancellation = ({ payment = 'a-payment', ...asking }: RequestOptions = {}) =>
  requestOf('DELETE', `/${payment}`, asking);
export const authorisation = ({ payment = 'a-payment', ...asking }: RequestOptions = {}) =>
  requestOf('POST', `/${payment}/authorisations`, asking);
export const statusRead = (asking: RequestOptions = {}) => requestOf('GET', '/a-payment/status', asking);

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: 'any',
  paymentProducts: 'any',
  authorisationTypes: 'any',
});

function requestOf(method: Method, tail: string, asking: RequestOptions): PisRequest {
  const { service = 'payments', body = '', headers = json, named, withinMs = 10_000 } = asking;
  const found = match(method, `/berlingroup/v1/${service}/sepa-credit-transfers${tail}`);
  assert.ok(found.kind === 'operation');
  const arrivedAtMs = performance.now();
  return {
    operation: found.operation,
    client: clientOf(asking),
    requestId: asking.requestId ?? requestId,
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
