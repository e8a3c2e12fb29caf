/** Updates the counters and histograms of requests from their records. */

import type { RequestEvent } from '../request/request-events.ts';
import type { Metrics } from './metrics.ts';
import { unknownLabel } from './metrics-table.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** By the first digit of the status. Constants, so that no request creates a string. */
const statusClasses = [unknownLabel, '1xx', '2xx', '3xx', '4xx', '5xx'];

/** The label of a status. */
export const statusClassOf = (status: number): string =>
  statusClasses[Math.floor(status / 100)] ?? unknownLabel;

export function createRequestMetrics(
  metrics: Pick<Metrics, 'increment' | 'counter' | 'histogram'>,
): RequestObserver {
  // What nearly every request counts is found without a lookup of each label.
  const answersOf = remember((operation, environment, served_from) => {
    const duration = metrics.histogram('penstock_request_duration_seconds', { operation, served_from });
    const counters = remember((status) =>
      metrics.counter('penstock_requests_total', {
        operation,
        environment,
        error: unknownLabel,
        status,
        served_from,
      }),
    );
    return { duration, counters };
  });
  const verdictsOf = remember((operation, environment, verdict) =>
    metrics.counter('penstock_status_reads_total', { operation, environment, verdict }),
  );
  const ledgerVerdictsOf = remember((operation, verdict) =>
    metrics.counter('penstock_ledger_verdicts_total', { operation, verdict }),
  );
  const waitsOf = remember((environment, lane) =>
    metrics.histogram('penstock_queue_wait_seconds', { environment, lane }),
  );
  const callsOf = remember((environment, lane) =>
    metrics.histogram('penstock_upstream_duration_seconds', { environment, lane }),
  );

  function countEvent(event: RequestEvent, { request, environment = unknownLabel }: RequestRecord): void {
    if (!request) return;
    const { operation, lane } = request;
    switch (event.what) {
      case 'ledger':
        ledgerVerdictsOf(operation, event.verdict).value += 1;
        break;
      case 'cache':
        verdictsOf(operation, environment, event.verdict).value += 1;
        break;
      case 'permit':
        waitsOf(environment, lane).observe(event.waitedMs / 1_000);
        break;
      case 'queue-refused':
        metrics.increment('penstock_queue_refusals_total', { environment, lane, code: event.code });
        break;
      case 'call':
        callsOf(environment, lane).observe(event.totalMs / 1_000);
        break;
      case 'wait':
        metrics
          .histogram('penstock_status_wait_seconds', { environment, outcome: event.outcome })
          .observe(event.waitedMs / 1_000);
        break;
      case 'retry':
        metrics.increment('penstock_retries_total', { environment, lane });
        break;
      case 'late-answer':
        metrics.increment('penstock_late_answers_total', { environment, operation });
        break;
      case 'environment':
      case 'circuit-refused':
      case 'client-disconnected':
      case 'recorded':
      case 'unreadable':
      case 'bank-error':
      case 'deviation':
      case 'payment':
    }
  }

  return {
    onRequestEnd(record) {
      const { request, environment = unknownLabel, error, durationMs, events } = record;
      const servedFrom = record.servedFrom ?? 'gateway';
      const status = statusClassOf(record.status);
      const operation = request?.operation ?? unknownLabel;
      if (error || !request || durationMs === undefined) {
        const labels = { operation, environment, error: error?.code ?? unknownLabel, status };
        metrics.increment('penstock_requests_total', { ...labels, served_from: servedFrom });
        if (request && durationMs !== undefined)
          metrics
            .histogram('penstock_request_duration_seconds', { operation, served_from: servedFrom })
            .observe(durationMs / 1_000);
      } else {
        const answers = answersOf(operation, environment, servedFrom);
        answers.counters(status).value += 1;
        answers.duration.observe(durationMs / 1_000);
      }
      for (const { event } of events) countEvent(event, record);
    },
    onLateEvent: countEvent,
  };
}

/** Beyond these combinations, nothing more is remembered. */
const maxRemembered = 64;

/**
 * Remembers what `create` returns for each combination of texts. They are few, and constants: to compare them costs less than a
 * lookup of each in a Map.
 */
function remember<Value>(
  create: (one: string, two: string, three: string) => Value,
): (one: string, two?: string, three?: string) => Value {
  const known: {
    readonly one: string;
    readonly two: string;
    readonly three: string;
    readonly value: Value;
  }[] = [];
  return (one, two = '', three = '') => {
    for (const entry of known)
      if (entry.one === one && entry.two === two && entry.three === three) return entry.value;
    const value = create(one, two, three);
    if (known.length < maxRemembered) known.push({ one, two, three, value });
    return value;
  };
}
