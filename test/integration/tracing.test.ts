/** Traces lead from the TPP to the bank: spans are exported, and `traceparent` is passed on. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { assembleGateway } from '../../src/gateway.ts';
import { createTracing } from '../../src/telemetry/tracing.ts';
import { call } from '../kit/call.ts';
import {
  configOf,
  type Sections,
  shortDeadlines,
  startGatewayWithBank,
  withoutLimits,
} from '../kit/gateway.ts';
import { type CollectedSpan, type OtlpCollector, startOtlpCollector } from '../kit/otlp-collector.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { requestRecord } from '../kit/request-records.ts';
import { until, within } from '../kit/within.ts';

const callerTraceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** A gateway with tracing, its bank and its collector. */
async function startTraced(t: TestContext, sections: Sections = {}, sample = '100%') {
  const collector = await startOtlpCollector(t);
  return {
    collector,
    ...(await startGatewayWithBank(t, { tracing: { otlpUrl: collector.url, sample }, ...sections })),
  };
}

const spansNamed = ({ spans }: OtlpCollector, name: string) => spans.filter((span) => span.name === name);

async function spanOf(collector: OtlpCollector, name: string): Promise<CollectedSpan> {
  await until(8_000, name, () => spansNamed(collector, name).length > 0);
  return spansNamed(collector, name)[0] ?? assert.fail();
}

/** The `traceparent` values of the last request to the bank. */
function traceparentsAtBank({
  requests,
}: {
  readonly requests: readonly { readonly rawHeaders: readonly string[] }[];
}) {
  const raw = requests.at(-1)?.rawHeaders ?? [];
  return raw.filter((_, index) => /^traceparent$/i.test(raw[index - 1] ?? '') && index % 2 === 1);
}

const withFields = (...fields: readonly (readonly [string, string])[]) => ({
  ...initiation,
  headers: [...fields, ...initiation.headers],
});

test("a payment is exported as one span in the caller's trace, with child spans for each wait and for the call", async (t) => {
  const { collector, bank, gateway } = await startTraced(t);
  const id = randomUUID();
  const before = Date.now();
  await call(gateway.url, withFields(['traceparent', callerTraceparent], ['X-Request-ID', id]));

  const payment = await spanOf(collector, 'initiatePayment');
  const [, traceId, parentId] = callerTraceparent.split('-');
  assert.deepEqual([payment.traceId, payment.parentSpanId, payment.kind], [traceId, parentId, 2]);
  assert.deepEqual(payment.attributes, {
    'penstock.request_id': id,
    'http.response.status_code': 201,
    'penstock.client': 'anonymous',
    'penstock.tenant': 'anonymous',
    'penstock.environment': 'sandbox',
    'penstock.served_from': 'bank',
    'penstock.environment_why': 'only-one',
  });
  for (const name of ['wait for the ledger', 'wait in the queue', 'call the bank']) {
    const child = await spanOf(collector, name);
    assert.deepEqual([child.traceId, child.parentSpanId], [traceId, payment.spanId], name);
    assert.ok(child.startMs >= payment.startMs - 1 && child.endMs <= payment.endMs + 1, name);
  }
  assert.ok(payment.startMs >= before - 1 && payment.endMs <= Date.now() + 1);
  const toBank = await spanOf(collector, 'call the bank');
  assert.deepEqual(traceparentsAtBank(bank), [`00-${traceId}-${toBank.spanId}-01`]);
  assert.equal(toBank.attributes['http.response.status_code'], 201);
  assert.deepEqual([...collector.services], ['penstock']);
});

test('a request with no traceparent, or an invalid one, starts a new trace', async (t) => {
  const { collector, bank, gateway } = await startTraced(t);
  await call(gateway.url, withFields(['traceparent', '00-not-a-trace'], ['tracestate', 'vendor=1']));
  const payment = await spanOf(collector, 'initiatePayment');
  assert.equal(payment.parentSpanId, undefined);
  assert.match(traceparentsAtBank(bank)[0] ?? '', new RegExp(`^00-${payment.traceId}-[0-9a-f]{16}-01$`));
  assert.ok(!bank.requests[0]?.rawHeaders.some((field) => /tracestate/i.test(field)));
});

test('the sampling decision of the caller overrides tracing.sample', async (t) => {
  const { collector, bank, gateway } = await startTraced(t, {}, '0%');
  await call(gateway.url, initiation);
  assert.match(traceparentsAtBank(bank)[0] ?? '', /-00$/);
  await call(gateway.url, withFields(['traceparent', callerTraceparent.replace(/01$/, '00')]));
  assert.match(traceparentsAtBank(bank)[0] ?? '', /^00-0af7651916cd43dd8448eb211c80319c-.{16}-00$/);
  await call(gateway.url, withFields(['traceparent', callerTraceparent]));
  await spanOf(collector, 'initiatePayment');
  assert.equal(spansNamed(collector, 'initiatePayment').length, 1);
});

test('without tracing, the trace headers of a TPP reach the bank unchanged', async (t) => {
  const { bank, gateway } = await startGatewayWithBank(t);
  const odd = '00-NOT even A trace';
  await call(gateway.url, withFields(['TraceParent', odd], ['tracestate', 'vendor=1']));
  assert.deepEqual(traceparentsAtBank(bank), [odd]);
  assert.ok(bank.requests[0]?.rawHeaders.includes('vendor=1'));
});

test('a call that ends after its request is exported, and the span of the failed request is an error', async (t) => {
  const { collector, bank, gateway } = await startTraced(t, shortDeadlines);
  bank.injectFault({ name: 'latency', ms: 600_000 }, { times: 1 });
  assert.equal((await call(gateway.url, initiation)).status, 504);
  bank.endDelays();
  const payment = await spanOf(collector, 'initiatePayment');
  assert.deepEqual([payment.failed, payment.attributes['error.type']], [true, 'OUTCOME_UNKNOWN']);
  const late = await spanOf(collector, 'call the bank');
  assert.equal(late.parentSpanId, payment.spanId);
  assert.ok(late.endMs > payment.endMs);
  assert.equal(spansNamed(collector, 'call the bank').length, 1);
});

test('a collector that fails or hangs does not affect requests, and is logged once', async (t) => {
  const { collector, gateway } = await startTraced(t);
  const lost = () => gateway.logLines.filter((line) => line.includes('traces cannot be exported')).length;
  collector.respondWith(400);
  assert.equal((await call(gateway.url, initiation)).status, 201);
  await until(8_000, 'the warning', () => lost() > 0);
  collector.respondWith(0);
  for (let one = 0; one < 10; one++) assert.equal((await call(gateway.url, statusRead)).status, 404);
  assert.equal(lost(), 1);
});

test('a stopping gateway exports the remaining spans, and does not wait for a collector that hangs', async (t) => {
  const collector = await startOtlpCollector(t);
  const { bank } = await startGatewayWithBank(t);
  const sections = {
    listen: { port: 0 },
    admin: { port: 0 },
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    tracing: { otlpUrl: collector.url, sample: '100%' },
  };
  for (const status of [200, 0]) {
    collector.respondWith(status);
    const gateway = assembleGateway(configOf(withoutLimits(sections)), () => {});
    const { tppPort } = await gateway.start();
    await call(`http://127.0.0.1:${tppPort}`, initiation);
    await within(20_000, 'the gateway to stop', gateway.stop());
    assert.equal(spansNamed(collector, 'initiatePayment').length, 1);
  }
});

test('of the spans that wait for a collector that hangs a bounded number is kept', async (t) => {
  const collector = await startOtlpCollector(t);
  const tracing = createTracing({ otlpUrl: collector.url, sample: 1 }, () => {}) ?? assert.fail();
  await tracing.open();
  collector.respondWith(0);
  const { trace } = tracing.startTrace([]);
  for (let one = 0; one < 10_000; one++) tracing.onRequestEnd(requestRecord({ trace }));
  collector.respondWith(200);
  await tracing.close();
  const { length } = collector.spans;
  assert.ok(length > 0 && length <= 2_048 + 512, `${length} spans`); // a full queue, and the batch that was on its way
});
