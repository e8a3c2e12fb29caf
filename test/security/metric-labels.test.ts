import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import { alertTable, severities } from '../../src/alerts/alert-table.ts';
import { operations } from '../../src/pis/operations.ts';
import { errorTable } from '../../src/request/errors.ts';
import { requestText, statusRead } from '../kit/attack.ts';
import { call } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { sendRaw } from '../kit/raw-connection.ts';
import { transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

/** The allowed values of every label that does not come from the configuration. */
const allowedValues: Readonly<Record<string, readonly string[]>> = {
  operation: [...operations.map(({ name }) => name), 'lookUpRequest', 'none'],
  environment: ['sandbox', 'none'],
  lane: ['write', 'read', 'status'],
  status: ['2xx', '3xx', '4xx', '5xx'],
  error: [...Object.keys(errorTable), 'none'],
  code: Object.keys(errorTable),
  served_from: ['bank', 'cache', 'stale-cache', 'shared', 'ledger', 'gateway'],
  verdict: [
    ...['hit', 'stale', 'shared', 'miss', 'request', 'bypass'],
    ...['claimed', 'replayed', 'running', 'in-doubt', 'happened', 'another-request'],
  ],
  state: ['closed', 'open', 'half-open', 'probation'],
  as: ['open', 'closed'],
  direction: ['request', 'response'],
  level: ['harmful', 'notable', 'usual'],
  result: ['checked', 'sampled_out', 'shed', 'failed', 'not_counted'],
  kind: ['wait', 'stream'],
  statement: ['claim', 'mark', 'record'],
  id: Object.keys(alertTable),
  severity: severities,
  tenant: ['anonymous'], // otherwise the configured ones
};

/** Requests that differ in method, path and header values. */
function oddCall(index: number) {
  const method = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'][index % 6] ?? 'GET';
  const odd = `odd-${index}`;
  const paths = [
    `${transfersPath}/${odd}`,
    `${transfersPath}/${odd}/status`,
    `${transfersPath}/${odd}/authorisations`,
    `/berlingroup/v1/${odd}/sepa-credit-transfers/x`,
    `/berlingroup/v1/payments/${odd}`,
    `/${odd}/${odd}`,
    `/requests/${odd}`,
    `${transfersPath}/x?${odd}`,
  ];
  const headers = [
    ['Penstock-Environment', index % 5 === 0 ? odd : 'sandbox'],
    ['X-API-Key', odd],
    ['User-Agent', odd],
    ['X-Request-ID', index % 11 === 0 ? odd : randomUUID()],
  ] as const;
  return { method, path: paths[index % paths.length] ?? '/', headers };
}

/*
 * Attack: a TPP sends a new value in every place of a request. If such a value became a label, each request would create a
 * time series, until the memory of the gateway or of the monitoring is used up.
 */
describe('the time series of the metrics', () => {
  test('H10: are as many after 200 different requests as after four', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const series = async () => {
      const { text } = await call(gateway.adminUrl, { method: 'GET', path: '/metrics' });
      // Checks of the contract are counted behind the requests: the next test has their labels.
      return text.split('\n').filter((line) => /^penstock_(?!contract_)/.test(line));
    };
    const odd = (mark: string) => [
      statusRead(`X-A: ${mark}`, `Authorization: Bearer ${mark}`),
      requestText(`GET /berlingroup/v1/payments/${mark}/${mark}/status HTTP/1.1`),
      requestText(`GET /${mark} HTTP/1.1`),
      requestText(`${mark.toUpperCase()} /x HTTP/1.1`),
    ];
    for (const bytes of odd('first')) await sendRaw(gateway.port, bytes);
    const fromDatabase = ['penstock_in_doubt', 'penstock_instances_live', 'penstock_database_bytes'];
    await until(5_000, 'the gauges of the database have values', async () => {
      const lines = await series();
      return fromDatabase.every((name) => lines.some((line) => line.startsWith(`${name} `)));
    });
    const before = await series();
    for (let count = 0; count < 50; count++)
      for (const bytes of odd(`canary${count}`)) await sendRaw(gateway.port, bytes);
    const after = await series();
    assert.equal(after.length, before.length);
    assert.doesNotMatch(after.join('\n'), /canary/);
  });

  test('H10: stay below 1,000 after three thousand different requests, with known label values only', async (t) => {
    const { gateway } = await startGatewayWithBank(t, { requests: { selfService: true } });
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    t.after(() => agent.destroy());
    const total = 3_000;
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
        assert.ok(label === 'le' || allowedValues[label]?.includes(value), `${name}{${label}="${value}"}`);
    assert.ok(samples.length < 1_000, `${samples.length} time series`);
    const requests = samples.filter(({ name }) => name === 'penstock_requests_total');
    assert.equal(
      requests.reduce((sum, { value }) => sum + value, 0),
      total,
    );
  });
});
