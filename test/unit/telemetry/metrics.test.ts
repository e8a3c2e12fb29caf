import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTelemetry } from '../../../src/telemetry/create-telemetry.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { metricsTable } from '../../../src/telemetry/metrics-table.ts';
import { parsePrometheus } from '../../kit/prometheus.ts';

describe('the metrics endpoint', () => {
  test('lists every metric of the table with its help, and the metrics of the process', async () => {
    const families = parsePrometheus(await createMetrics().text());
    for (const [name, { kind, help }] of Object.entries(metricsTable))
      assert.deepEqual([families.get(name)?.type, families.get(name)?.help], [kind, help], name);
    for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds'])
      assert.ok(families.has(name), name);
  });

  test('counts for each gateway separately, even in one process', async () => {
    const [metrics, others] = [createMetrics(), createMetrics()];
    metrics.increment('penstock_retries_total', { environment: 'sandbox', lane: 'read' });
    const samplesOf = async ({ text }: typeof metrics) =>
      parsePrometheus(await text()).get('penstock_retries_total')?.samples.length;
    assert.deepEqual([await samplesOf(metrics), await samplesOf(others)], [1, 0]);
  });

  test('names the version of the gateway and of Node', async () => {
    const { metrics } = createTelemetry(() => {}, { otlpUrl: null, sample: 0 });
    const [info] = parsePrometheus(await metrics.text()).get('penstock_build_info')?.samples ?? [];
    assert.match(info?.labels.version ?? '', /^\d+\.\d+\.\d+/);
    assert.deepEqual([info?.labels.node, info?.value], [process.version, 1]);
  });
});

describe('the sources of a gauge', () => {
  const running = (environment: string, value: number) => ({ labels: { environment }, value });

  test('are read at every scrape', async () => {
    const metrics = createMetrics();
    let value = 1;
    metrics.addGaugeSource('penstock_calls_running', () => [running('sandbox', value)]);
    assert.match(await metrics.text(), /^penstock_calls_running\{environment="sandbox"\} 1$/m);
    value = 2;
    assert.match(await metrics.text(), /^penstock_calls_running\{environment="sandbox"\} 2$/m);
  });

  test('contribute to one gauge together', async () => {
    const metrics = createMetrics();
    for (const environment of ['sandbox', 'production'])
      metrics.addGaugeSource('penstock_calls_running', () => [running(environment, 1)]);
    const samples = parsePrometheus(await metrics.text()).get('penstock_calls_running')?.samples;
    assert.deepEqual(
      samples?.map(({ labels }) => labels.environment),
      ['sandbox', 'production'],
    );
  });

  test('leave no value behind when they are removed', async () => {
    const metrics = createMetrics();
    const remove = metrics.addGaugeSource('penstock_calls_running', () => [running('sandbox', 1)]);
    assert.match(await metrics.text(), /sandbox/);
    remove();
    assert.doesNotMatch(await metrics.text(), /sandbox/);
  });
});
