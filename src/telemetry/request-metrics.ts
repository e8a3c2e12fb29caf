/** Updates the counters and histograms of requests from their records. */

import type { RequestEvent } from '../request/request-events.ts';
import type { Metrics } from './metrics.ts';
import { unknownLabel } from './metrics-table.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** By the first digit of the status. Constants, so that no request creates a string. */
const statusClasses = [unknownLabel, '1xx', '2xx', '3xx', '4xx', '5xx'];

export function createRequestMetrics(metrics: Pick<Metrics, 'increment' | 'observe'>): RequestObserver {
  function countEvent(event: RequestEvent, { request, environment = unknownLabel }: RequestRecord): void {
    if (!request) return;
    const { operation, lane } = request;
    switch (event.what) {
      case 'ledger':
        metrics.increment('penstock_ledger_verdicts_total', { operation, verdict: event.verdict });
        break;
      case 'cache':
        metrics.increment('penstock_status_reads_total', { operation, environment, verdict: event.verdict });
        break;
      case 'permit':
        metrics.observe('penstock_queue_wait_seconds', { environment, lane }, event.waitedMs / 1_000);
        break;
      case 'queue-refused':
        metrics.increment('penstock_queue_refusals_total', { environment, lane, code: event.code });
        break;
      case 'call':
        metrics.observe('penstock_upstream_duration_seconds', { environment, lane }, event.totalMs / 1_000);
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
    }
  }

  return {
    onRequestEnd(record) {
      const { request, environment = unknownLabel, status, error, durationMs, events } = record;
      const operation = request?.operation ?? unknownLabel;
      const servedFrom = record.servedFrom ?? 'gateway';
      metrics.increment('penstock_requests_total', {
        operation,
        environment,
        error: error?.code ?? unknownLabel,
        status: statusClasses[Math.floor(status / 100)] ?? unknownLabel,
        served_from: servedFrom,
      });
      if (request && durationMs !== undefined) {
        const labels = { operation, served_from: servedFrom };
        metrics.observe('penstock_request_duration_seconds', labels, durationMs / 1_000);
      }
      for (const { event } of events) countEvent(event, record);
    },
    onLateEvent: countEvent,
  };
}
