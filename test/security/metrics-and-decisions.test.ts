/**
 * The story: a TPP puts a new value wherever it can, ten thousand times. Each would be a time series of its own if it
 * became a label, until the monitoring falls over; or it would be read there, or in a decision, by those who may not.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { test } from 'node:test';
import { kinds } from '../../src/flow/errors.ts';
import { operations } from '../../src/pis/operations.ts';
import { refusedRequests } from '../kit/broken-requests.ts';
import { call } from '../kit/call.ts';
import { anyCanary, orderWithCanaries, paymentIdWithCanary, requestWithCanaries } from '../kit/canaries.ts';
import { startCollector } from '../kit/collector.ts';
import { startLine } from '../kit/gateway.ts';
import { operate } from '../kit/operator.ts';
import { readPrometheus } from '../kit/prometheus.ts';
import { sendRaw } from '../kit/raw.ts';
import { paymentsPath } from '../kit/tpp.ts';
import { until } from '../kit/within.ts';

/** Every label of ours that is not a name of the configuration, and the values it may have. */
const values: Readonly<Record<string, readonly string[]>> = {
  operation: [...operations.map(({ name }) => name), 'none'],
  environment: ['sandbox', 'none'],
  lane: ['write', 'read', 'status'],
  status: ['2xx', '3xx', '4xx', '5xx'],
  error: [...Object.keys(kinds), 'none'],
  code: Object.keys(kinds),
  served_from: ['bank', 'cache', 'stale-cache', 'shared', 'ledger', 'gateway'],
  verdict: [
    ...['hit', 'stale', 'shared', 'miss', 'request', 'bypass'],
    ...['claimed', 'replayed', 'running', 'in-doubt', 'happened', 'another-request', 'unprotected'],
  ],
  state: ['closed', 'open', 'half-open', 'probation'],
};

/** Odd in another way each. */
function oddCall(index: number) {
  const method = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'][index % 6] ?? 'GET';
  const odd = `odd-${index}`;
  const paths = [
    `${paymentsPath}/${odd}`,
    `${paymentsPath}/${odd}/status`,
    `${paymentsPath}/${odd}/authorisations`,
    `/berlingroup/v1/${odd}/sepa-credit-transfers/x`,
    `/berlingroup/v1/payments/${odd}`,
    `/${odd}/${odd}`,
    `${paymentsPath}/x?${odd}`,
  ];
  const headers = [
    ['Penstock-Environment', index % 5 === 0 ? odd : 'sandbox'],
    ['X-API-Key', odd],
    ['User-Agent', odd],
    ['X-Request-ID', index % 11 === 0 ? odd : randomUUID()],
  ] as const;
  return { method, path: paths[index % paths.length] ?? '/', headers };
}

test('ten thousand odd requests leave metrics of the known labels, and few of them', async (t) => {
  const { gateway } = await startLine(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  t.after(() => agent.destroy());
  const total = 10_000;
  let sent = 0;
  const worker = async () => {
    while (sent < total) await call(gateway.url, oddCall(sent++), agent);
  };
  await Promise.all(Array.from({ length: 16 }, worker));

  const { text } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
  assert.doesNotMatch(text, /odd-/);
  const families = [...readPrometheus(text)].filter(([name]) => name.startsWith('penstock_'));
  const samples = families.flatMap(([, { samples: all }]) => all);
  for (const { name, labels } of samples.filter((sample) => sample.name !== 'penstock_build_info'))
    for (const [label, value] of Object.entries(labels))
      assert.ok(label === 'le' || values[label]?.includes(value), `${name}{${label}="${value}"}`);
  assert.ok(samples.length < 1_000, `${samples.length} time series`);
  const requests = samples.filter(({ name }) => name === 'penstock_requests_total');
  assert.equal(
    requests.reduce((sum, { value }) => sum + value, 0),
    total,
  );
});

test('nothing personal stands in a decision, a metric or a span, whatever was sent and answered', async (t) => {
  const collector = await startCollector(t);
  const { bank, gateway } = await startLine(t, { tracing: { otlpUrl: collector.url, sample: '100%' } });
  bank.nextPaymentId(paymentIdWithCanary);
  const payment = `${paymentsPath}/${paymentIdWithCanary}`;
  const accepted = [
    requestWithCanaries(`POST ${paymentsPath} HTTP/1.1`, [], orderWithCanaries),
    ...[payment, `${payment}/status`, `${payment}/authorisations`].map((path) =>
      requestWithCanaries(`GET ${path} HTTP/1.1`),
    ),
    requestWithCanaries(`DELETE ${payment} HTTP/1.1`),
  ];
  let told = 0;
  for (const request of [...accepted, ...refusedRequests]) {
    const { headers } = await sendRaw(gateway.port, request);
    const decision = await operate(gateway, 'GET', `/api/decisions/${headers.get('x-request-id')}`);
    told += Number(decision.status === 200);
    assert.doesNotMatch(decision.text, anyCanary);
  }
  assert.equal(
    told,
    accepted.length + refusedRequests.length,
    'each has a decision, under the id of its answer',
  );
  const { text } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
  assert.doesNotMatch(text, anyCanary);

  const requestSpans = () => collector.spans.filter(({ kind }) => kind === 2);
  await until(8_000, 'all spans', () => requestSpans().length >= accepted.length);
  assert.doesNotMatch(JSON.stringify(collector.spans), anyCanary);
});
