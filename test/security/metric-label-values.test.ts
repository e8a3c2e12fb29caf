/**
 * The story: a TPP puts a new value wherever it can, ten thousand times. Each would be a time series of its own if it
 * became a label, until the monitoring falls over.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { test } from 'node:test';
import { operations } from '../../src/pis/operations.ts';
import { errorTable } from '../../src/request/errors.ts';
import { call } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { transfers } from '../kit/request.ts';

/** Every label of ours that is not a name of the configuration, and the values it may have. */
const values: Readonly<Record<string, readonly string[]>> = {
  operation: [...operations.map(({ name }) => name), 'none'],
  environment: ['sandbox', 'none'],
  lane: ['write', 'read', 'status'],
  status: ['2xx', '3xx', '4xx', '5xx'],
  error: [...Object.keys(errorTable), 'none'],
  code: Object.keys(errorTable),
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
    `${transfers}/${odd}`,
    `${transfers}/${odd}/status`,
    `${transfers}/${odd}/authorisations`,
    `/berlingroup/v1/${odd}/sepa-credit-transfers/x`,
    `/berlingroup/v1/payments/${odd}`,
    `/${odd}/${odd}`,
    `${transfers}/x?${odd}`,
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
  const families = [...parsePrometheus(text)].filter(([name]) => name.startsWith('penstock_'));
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
