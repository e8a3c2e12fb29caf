/** The parts of the hot path, with the inputs of the other measurements. */

import assert from 'node:assert/strict';
import type { Deviation } from '../src/contract/deviation.ts';
import { createCheckQueue } from '../src/contract-guard/check-queue.ts';
import { createDeviationCounts } from '../src/contract-guard/deviation-counts.ts';
import { createJudge, type GuardedEnvironment } from '../src/contract-guard/guarded-environments.ts';
import { RequestHead } from '../src/http/request-head.ts';
import { createIdentifyRequest } from '../src/idempotency/request-identity.ts';
import { headerFieldsFrom, headerValue } from '../src/pis/headers.ts';
import { createMatcher, type Operation } from '../src/pis/operations.ts';
import { meaningOf } from '../src/request/meaning.ts';
import type { RoutedRequest } from '../src/request/messages.ts';
import { type Content, contentOf, transactionStatusIn } from '../src/request/read-content.ts';
import { rowOf } from '../src/request-records/request-rows.ts';
import { createMapLinks } from '../src/rewriting/link-mapper.ts';
import { rewriteLinks } from '../src/rewriting/rewrite-links.ts';
import { createMemoryState } from '../src/state/memory.ts';
import { reservePermit } from '../src/state/token-bucket.ts';
import { statusTtlMs } from '../src/status-cache/cache-control.ts';
import { cacheFieldsIn } from '../src/status-cache/cache-fields.ts';
import { createCacheKeys } from '../src/status-cache/cache-key.ts';
import {
  parseCachedPayment,
  serializeCachedPayment,
  toPisResponse,
} from '../src/status-cache/cached-payment.ts';
import { recordRead } from '../src/status-cache/observation-rules.ts';
import type { RequestRecord } from '../src/telemetry/request-record.ts';
import { environmentOf } from '../test/kit/environment.ts';
import { contractParts } from './contract-parts.ts';
import type { LoopBody } from './measure/cpu-loop.ts';
import { cachedBody, initiation, initiationResponse, statusRequest } from './traffic.ts';

/** One row of the table. */
interface Part {
  readonly name: string;
  readonly body: LoopBody;
}

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: ['payments', 'bulk-payments', 'periodic-payments'],
  paymentProducts: 'any',
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
});
const id = '0123456789abcdef0123456789abcdef';
const status = statusRequest(id);
const rawHeaders = Object.entries({ Host: '127.0.0.1', ...status.headers }).flat();
const fields = headerFieldsFrom(rawHeaders);

const requestOf = (method: string, path: string, body = ''): RoutedRequest => ({
  operation: operationOf(method, path),
  client: { name: 'shop', tenant: 'shop', environments: ['sandbox', 'production'] },
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  headers: fields,
  body: Buffer.from(body),
  arrivedAtMs: 0,
  deadlineAtMs: 35_000,
  environment: environmentOf(),
});
const read = requestOf('GET', status.path);
const payment = requestOf('POST', initiation.path, initiation.body);

const cacheKeys = createCacheKeys(createMemoryState());
await cacheKeys.refreshSecret();
const keyOfRead = () => cacheKeys.of(read, cacheFieldsIn(read.headers, []));
const cacheKey = keyOfRead() ?? assert.fail('the secret is known');
const cachedResponse = {
  headers: [['Content-Type', 'application/json'] as const],
  body: Buffer.from(cachedBody),
  fetchedAtMs: 0,
  ttlMs: 3_600_000,
  credential: cacheKey.credential,
};
const observation = {
  statusHash: 'ACCC',
  observedAtMs: 0,
  responses: { [cacheKey.variant]: cachedResponse },
};
const [, observed = parseCachedPayment(undefined)] = recordRead(
  parseCachedPayment(undefined),
  '',
  observation,
);
const cachedPayment = serializeCachedPayment(observed);

const mapLinksOf = createMapLinks({
  publicUrl: 'https://gateway.example',
  segment: 'berlingroup',
  match,
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
  hasAnyService: false,
  onKept() {},
});
const links = mapLinksOf(payment, id);
const withLinks = initiationResponse(id);
const freshness = { finalTtl: 3_600_000, settledTtl: 60_000, pendingTtl: 1_000, pendingTtlMax: 15_000 };
const rate = { perSecond: 50, burst: 50 };

const requestRecord: RequestRecord = {
  number: 1,
  receivedAtMs: 0,
  durationMs: 12,
  requestId: read.requestId,
  request: {
    operation: 'getPayment',
    lane: 'read',
    client: 'shop',
    tenant: 'shop',
    tenantId: 'shop',
    product: 'payments/sepa-credit-transfers',
    paymentId: id,
  },
  network: undefined,
  environment: 'sandbox',
  status: 200,
  servedFrom: 'bank',
  upstreamMs: 10,
  error: undefined,
  events: [
    { afterMs: 0.2, event: { what: 'environment', environment: 'sandbox', why: 'affinity' } },
    { afterMs: 0.3, event: { what: 'permit', waitedMs: 0.1 } },
    {
      afterMs: 11,
      event: { what: 'call', attempt: 1, connection: 'reused', firstByteMs: 9, totalMs: 10, status: 200 },
    },
  ],
  trace: undefined,
};

const own = createJudge('sandbox', { hash: 'a', options: { standardVersion: '1.3.11' } }, true);
const guarded: GuardedEnvironment = {
  name: 'sandbox',
  standardVersion: '1.3.11',
  requests: 'report',
  responses: 'report',
  sample: 0.1,
  isSampled: () => true,
  own,
  judges: [own],
  satisfiesAll: undefined,
  requiresHeaders: false,
  missingHeader: () => undefined,
  consumedHeadersOf: () => [],
  prepare: async () => {},
  isUnusable: () => false,
};
const jsonHeaders = [
  ['Content-Type', 'application/json'],
  ['Location', '/berlingroup/v1/payments/sepa-credit-transfers/0123456789'],
] as const;
const initiationAnswer = { status: 201, headers: jsonHeaders, body: Buffer.from(withLinks) };
const statusAnswer = { status: 200, headers: jsonHeaders, body: Buffer.from('{"transactionStatus":"ACSP"}') };
const readNow = (answer: typeof initiationAnswer): Content => {
  const content = contentOf(answer);
  assert.ok(!(content instanceof Promise));
  return content;
};
const checkQueue = createCheckQueue({ check: () => true, skip() {}, isBusy: () => false });
const deviationCounts = createDeviationCounts();
const checkedMessage = {
  operation: 'initiatePayment',
  client: 'shop',
  requestId: payment.requestId,
  atMs: 0,
} as const;
const deviation: Deviation = { level: 'notable', rule: 'unknown', path: 'body/*', effect: 'ignored' };

const identify = createIdentifyRequest();

export const parts: readonly Part[] = [
  { name: 'operations: match a status read', body: () => match('GET', status.path) },
  { name: 'operations: match an initiation', body: () => match('POST', initiation.path) },
  { name: 'headers: pairs of rawHeaders', body: () => headerFieldsFrom(rawHeaders) },
  { name: 'headers: head of a request', body: () => new RequestHead(rawHeaders, '1.1') },
  { name: 'headers: find one', body: () => headerValue(fields, 'psu-ip-address') },
  { name: 'ledger: key and fingerprint, 1 KB', body: () => identify(payment) },
  {
    name: 'answers: content and meaning of an initiation',
    body: () => meaningOf(payment.operation, initiationAnswer, readNow(initiationAnswer), false),
  },
  { name: 'answers: transaction status', body: () => transactionStatusIn(readNow(statusAnswer)) },
  { name: 'rewriting: body with four links', body: () => rewriteLinks(withLinks, links) },
  { name: 'status cache: key of a request', body: keyOfRead },
  { name: 'status cache: parse a payment, 600 B', body: () => parseCachedPayment(cachedPayment) },
  { name: 'status cache: response from the cache', body: () => toPisResponse(cachedResponse, 'sandbox') },
  { name: 'status cache: time to live', body: () => statusTtlMs(freshness, 'payments', 'ACCP', 5_000) },
  { name: 'request log: the row of a record', body: () => rowOf(requestRecord, 'an-instance') },
  {
    name: 'contract: a request through the queue',
    body() {
      checkQueue.addRequest(guarded, payment);
      return checkQueue.drain();
    },
  },
  {
    name: 'contract: count a request with a deviation',
    body: () => deviationCounts.add(own.scopes.request, checkedMessage, [deviation]),
  },
  { name: 'token bucket: reserve a permit', body: () => reservePermit(0, 1_000, rate, 3_000) },
  ...contractParts,
];

function operationOf(method: string, path: string): Operation {
  const found = match(method, path);
  if (found.kind !== 'operation') throw new Error(`${method} ${path} is no operation`);
  return found.operation;
}
