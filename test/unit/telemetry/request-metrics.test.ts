import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable } from '../../../src/request/errors.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createRequestMetrics } from '../../../src/telemetry/request-metrics.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { parsePrometheus } from '../../kit/prometheus.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

/** Counts these requests. @returns the samples of a name, as Prometheus reads them */
async function count(...records: readonly RequestRecord[]) {
  const metrics = createMetrics();
  const observer = createRequestMetrics(metrics);
  for (const record of records) observer.onRequestEnd(record);
  const families = parsePrometheus(await metrics.text());
  return (name: string) =>
    [...families.values()].flatMap(({ samples }) => samples).filter((sample) => sample.name === name);
}

const events: readonly RequestEvent[] = [
  { what: 'ledger', verdict: 'claimed', waitedMs: 1 },
  { what: 'environment', environment: 'sandbox', why: 'only-one' },
  { what: 'cache', verdict: 'miss' },
  { what: 'permit', waitedMs: 2_000 },
  { what: 'queue-refused', code: 'QUEUE_FULL', waitedMs: 0 },
  { what: 'call', attempt: 1, connection: 'none', totalMs: 30, error: 'UPSTREAM_UNREACHED' },
  { what: 'retry', why: 'UPSTREAM_UNREACHED' },
  { what: 'call', attempt: 2, connection: 'new', totalMs: 70, status: 201 },
  { what: 'recorded', as: 'answered' },
];

describe('the request metrics', () => {
  test('count a request by operation, environment, status class, error and origin', async () => {
    const samples = await count(requestRecord(), failedRecord('CIRCUIT_OPEN', 503), {
      ...failedRecord('QUOTA_EXCEEDED', 429),
      request: undefined,
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

  test('measure waits and calls in seconds, and count refusals, retries and verdicts', async () => {
    const samples = await count(requestRecord({}, events));
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

  test('count a response of the bank that arrives after the end of the request', async () => {
    const metrics = createMetrics();
    createRequestMetrics(metrics).onLateEvent?.(
      { what: 'late-answer', status: 201 },
      failedRecord('OUTCOME_UNKNOWN', 504),
    );
    const late = parsePrometheus(await metrics.text()).get('penstock_late_answers_total');
    assert.equal(late?.samples[0]?.value, 1);
  });

  test('count every error code separately', async () => {
    const codes = Object.keys(errorTable) as (keyof typeof errorTable)[]; // its keys, as its type says
    const samples = await count(
      ...codes.map((code) =>
        requestRecord({ error: { code, why: '', proxyError: '', isOfTenant: false, stack: undefined } }),
      ),
    );
    assert.equal(samples('penstock_requests_total').length, codes.length);
  });
});
