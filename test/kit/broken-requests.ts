/** Requests that the listener refuses, marked with canaries: HTTP that is not accepted, and bytes that are not HTTP. */

import { initiationBodyWithCanaries, paymentIdWithCanary, requestWithCanaries } from './canaries.ts';
import { transfersPath } from './request.ts';

const payment = `${transfersPath}/${paymentIdWithCanary}`;
const get = (target: string, more: readonly string[] = []) =>
  requestWithCanaries(`GET ${target} HTTP/1.1`, more);
const post = (more: readonly string[], body = initiationBodyWithCanaries) =>
  requestWithCanaries(`POST ${transfersPath} HTTP/1.1`, more, body);

/** HTTP, but not a request that this gateway takes. */
export const refusedRequests: readonly string[] = [
  get('/'),
  get('/canary-path'),
  get(`/canary-segment/v1/payments/p/canary-id`),
  get(`${payment}?iban=canary-query|`),
  get(`${payment}/canary-fourth`),
  get(`${payment}/authorisations/canary-a/canary-b`),
  get(`${payment}/`),
  get(`${payment}%2fcanary-encoded`),
  get(`${payment};canary=1`),
  get(`${payment}/../canary-dots`),
  get(`${payment}#canary-fragment`),
  get(`${payment}${'canary'.repeat(60)}`),
  get(`/berlingroup/v1/canary-service/canary-product/canary-id`),
  get('/berlingroup/v1/payments/canary=product/canary-id'),
  get('http://canary.example/berlingroup/v1/payments/p/canary-id'),
  get('*'),
  requestWithCanaries(`PUT ${payment} HTTP/1.1`, [], initiationBodyWithCanaries),
  requestWithCanaries(`PATCH ${payment} HTTP/1.1`),
  requestWithCanaries(`TRACE ${payment} HTTP/1.1`),
  requestWithCanaries(`DELETE ${payment} HTTP/1.1`, [], initiationBodyWithCanaries),
  get(payment, ['X-Request-ID: canary-request-id']),
  get(payment, ['X-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721', 'X-Request-ID: canary-second-id']),
  get(payment, ['Penstock-Environment: canary-environment']),
  get(payment, ['Authorization: Bearer canary-second-token']),
  get(payment, ['Canary_Underscore: canary']),
  get(payment, ['Connection: authorization, canary-hop']),
  get(payment, ['Expect: canary-expectation']),
  get(payment, ['Transfer-Encoding: canary-coding']),
  get(payment, ['Upgrade: canary-protocol', 'Connection: upgrade']),
  get(
    payment,
    Array.from({ length: 120 }, (_, index) => `X-Canary-${index}: canary`),
  ),
  post(['Accept: application/problem+json, canary/canary'], ''),
  post([], `{"canary":"${'canary'.repeat(200_000)}"}`),
];

/** Not HTTP, or no longer: Node's parser gives up on these. */
export const brokenRequests: readonly string[] = [
  'canary\r\n\r\n',
  'GET /canary-path\r\n\r\n',
  'CANARY /canary-path HTTP/1.1\r\nHost: canary\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ncanary',
  '\u0016\u0003\u0001\u0002\u0000\u0001canary-client-hello',
  'CONNECT canary.example:443 HTTP/1.1\r\nHost: canary.example:443\r\n\r\n',
  `GET ${payment} HTTP/9.9\r\nHost: canary\r\n\r\n`,
  `GET ${payment} HTTP/1.1\r\nHost: canary\r\ncanary-no-colon\r\n\r\n`,
  `GET ${payment} HTTP/1.1\r\nHost: canary\r\nCanary : space\r\n\r\n`,
  `GET ${payment} HTTP/1.1\r\nHost: canary\r\nX: canary\u0000nul\r\n\r\n`,
  `GET ${payment} HTTP/1.1\r\nHost: canary\r\nX: one\r\n canary-folded\r\n\r\n`,
  `GET ${payment} HTTP/1.1\r\nX-No-Host: canary\r\n\r\n`,
  `GET ${payment} HTTP/1.1\r\nHost: canary\r\nX-Large: ${'canary'.repeat(4_000)}\r\n\r\n`,
  post(['Content-Length: 9']),
  post(['Content-Length: canary']),
  `POST ${transfersPath} HTTP/1.1\r\nHost: canary\r\nTransfer-Encoding: chunked\r\n\r\ncanary-size\r\n`,
  `${post([], initiationBodyWithCanaries).slice(0, -20)}`,
  `${get(payment)}canary-behind-the-request\r\n\r\n`,
];
