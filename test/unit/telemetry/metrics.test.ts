import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable } from '../../../src/request/errors.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { metricsTable } from '../../../src/telemetry/metrics-table.ts';
import { readGauges } from '../../../src/telemetry/read-gauges.ts';
import { createRequestMetrics } from '../../../src/telemetry/request-metrics.ts';
import { parsePrometheus } from '../../kit/prometheus.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

/** What has been counted of these, as Prometheus reads it. */
async function counted(...decisions: readonly ReturnType<typeof requestRecord>[]) {
  const metrics = createMetrics();
  const observer = createRequestMetrics(metrics);
  for (const decision of decisions) observer.onRequestEnd(decision);
  const families = parsePrometheus(await metrics.text());
  return (name: string) =>
    [...families.values()].flatMap(({ samples }) => samples).filter((sample) => sample.name === name);
}

const everyFact: readonly RequestEvent[] = [
  { what: 'ledger', verdict: 'claimed', waitedMs: 1 },
  { what: 'environment', environment: 'sandbox', why: 'only-one' },
  { what: 'cache', verdict: 'miss' },
  { what: 'turn', waitedMs: 2_000 },
  { what: 'turn-refused', code: 'QUEUE_FULL', waitedMs: 0 },
  { what: 'call', attempt: 1, connection: 'none', totalMs: 30, error: 'UPSTREAM_UNREACHED' },
  { what: 'retry', why: 'UPSTREAM_UNREACHED' },
  { what: 'call', attempt: 2, connection: 'new', totalMs: 70, status: 201 },
  { what: 'recorded', as: 'answered' },
];

describe('the metrics', () => {
  test('are valid, every one of the table with its help, and those of the process beside them', async () => {
    const families = parsePrometheus(await createMetrics().text());
    for (const [name, { kind, help }] of Object.entries(metricsTable))
      assert.deepEqual([families.get(name)?.type, families.get(name)?.help], [kind, help], name);
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds'])
      assert.ok(families.has(name), name);
  });

  test('are counted by each gateway for itself, though several share a process', async () => {
    const other = createMetrics();
    createRequestMetrics(createMetrics()).onRequestEnd(requestRecord());
    assert.equal(parsePrometheus(await other.text()).get('penstock_requests_total')?.samples.length, 0);
  });

  test('count a request by what became of it', async () => {
    const samples = await counted(requestRecord(), failedRecord('CIRCUIT_OPEN', 503), {
      ...failedRecord('QUOTA_EXCEEDED', 429),
      asked: undefined,
      environment: undefined,
    });
    const common = { operation: 'initiatePayment', environment: 'sandbox' };
    assert.deepEqual(
      samples('penstock_requests_total').map(({ labels, value }) => [labels, value]),
      [
        [{ ...common, status: '2xx', error: 'none', served_from: 'bank' }, 1],
        [{ ...common, status: '5xx', error: 'CIRCUIT_OPEN', served_from: 'gateway' }, 1],
        [
          {
            operation: 'none',
            environment: 'none',
            status: '4xx',
            error: 'QUOTA_EXCEEDED',
            served_from: 'gateway',
          },
          1,
        ],
      ],
    );
  });

  test('are made of every fact that tells of time, refusals or repeats, in seconds', async () => {
    const samples = await counted(requestRecord({}, everyFact));
    const [where, environment] = [{ environment: 'sandbox', lane: 'write' }, { environment: 'sandbox' }];
    const only = (name: string) => {
      const [sample, ...more] = samples(name);
      assert.equal(more.length, 0, name);
      return [sample?.labels, sample?.value];
    };
    assert.deepEqual(only('penstock_queue_wait_seconds_sum'), [where, 2]);
    assert.deepEqual(only('penstock_queue_refusals_total'), [{ ...where, code: 'QUEUE_FULL' }, 1]);
    assert.deepEqual(only('penstock_upstream_duration_seconds_count'), [where, 2]);
    assert.deepEqual(only('penstock_upstream_duration_seconds_sum'), [where, 0.1]);
    assert.deepEqual(only('penstock_retries_total'), [where, 1]);
    const operation = { operation: 'initiatePayment' };
    assert.deepEqual(only('penstock_ledger_verdicts_total'), [{ ...operation, verdict: 'claimed' }, 1]);
    assert.deepEqual(only('penstock_status_reads_total'), [
      { ...operation, ...environment, verdict: 'miss' },
      1,
    ]);
  });

  test('count what becomes known only later', async () => {
    const metrics = createMetrics();
    createRequestMetrics(metrics).onLateEvent?.(
      { what: 'late-answer', status: 201 },
      failedRecord('OUTCOME_UNKNOWN', 504),
    );
    const late = parsePrometheus(await metrics.text()).get('penstock_late_answers_total');
    assert.equal(late?.samples[0]?.value, 1);
  });

  test('know every error of the table', async () => {
    const codes = Object.keys(errorTable) as (keyof typeof errorTable)[]; // its keys, as its type says
    const samples = await counted(
      ...codes.map((code) => requestRecord({ error: { code, why: '', proxyError: '' } })),
    );
    assert.equal(samples('penstock_requests_total').length, codes.length);
  });
});

describe('the gauges that are looked at when they are read', () => {
  const circuit = (state: string) => ({ environment: 'sandbox', lane: 'write', state });
  const world = (state: string, live: number | undefined = 2) => ({
    circuits: () => [circuit(state)],
    shapers: () => [
      {
        environment: 'sandbox',
        running: 4,
        perSecond: 50,
        pausedMs: 1_500,
        waiting: { write: 1, read: 2, status: 3 },
      },
    ],
    certificates: () => [],
    liveInstances: () => live,
    expectedInstances: () => 3,
  });
  const read = async (gauges: ReturnType<typeof world>) =>
    parsePrometheus(await createMetrics((metrics) => readGauges(metrics, gauges)).text());
  const valuesOf = (families: Awaited<ReturnType<typeof read>>, name: string) =>
    families.get(name)?.samples.map(({ labels, value }) => [...Object.values(labels), value]);

  test('show a circuit before it has ever changed', async () => {
    assert.deepEqual(valuesOf(await read(world('closed')), 'penstock_circuit_state'), [
      ['sandbox', 'write', 'closed', 1],
      ['sandbox', 'write', 'open', 0],
      ['sandbox', 'write', 'half-open', 0],
      ['sandbox', 'write', 'probation', 0],
    ]);
  });

  test('show queues, rates, instances, and what was built', async () => {
    const families = await read(world('open'));
    assert.deepEqual(valuesOf(families, 'penstock_queue_length'), [
      ['sandbox', 'write', 1],
      ['sandbox', 'read', 2],
      ['sandbox', 'status', 3],
    ]);
    assert.deepEqual(valuesOf(families, 'penstock_calls_running'), [['sandbox', 4]]);
    assert.deepEqual(valuesOf(families, 'penstock_shaping_rate'), [['sandbox', 50]]);
    assert.deepEqual(valuesOf(families, 'penstock_shaping_pause_seconds'), [['sandbox', 1.5]]);
    assert.deepEqual(valuesOf(families, 'penstock_instances_live'), [[2]]);
    assert.deepEqual(valuesOf(families, 'penstock_instances_expected'), [[3]]);
    const [version, node] = valuesOf(families, 'penstock_build_info')?.[0] ?? [];
    assert.match(String(version), /^\d+\.\d+\.\d+/);
    assert.equal(node, process.version);
  });

  test('keep nothing of an environment that is not configured any more', async () => {
    let environments = ['sandbox', 'production'];
    const gauges = {
      ...world('closed'),
      circuits: () => environments.map((environment) => ({ ...circuit('closed'), environment })),
    };
    const metrics = createMetrics((all) => readGauges(all, gauges));
    await metrics.text();
    environments = ['sandbox'];
    assert.doesNotMatch(await metrics.text(), /production/);
  });
});
