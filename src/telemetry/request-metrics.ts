/** Counts what the trails of requests say. */

import type { RequestEvent } from '../request/request-events.ts';
import type { Metrics } from './metrics.ts';
import { noLabelValue } from './metrics-table.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** By the first digit; no text is made for each request. */
const statusClasses = [noLabelValue, '1xx', '2xx', '3xx', '4xx', '5xx'];

export function createRequestMetrics(metrics: Pick<Metrics, 'increment' | 'observe'>): RequestObserver {
  function countEvent(one: RequestEvent, decision: RequestRecord): void {
    const { asked, environment = noLabelValue } = decision;
    if (!asked) return;
    const { operation, lane } = asked;
    switch (one.what) {
      case 'ledger':
        metrics.increment('penstock_ledger_verdicts_total', { operation, verdict: one.verdict });
        break;
      case 'cache':
        metrics.increment('penstock_status_reads_total', { operation, environment, verdict: one.verdict });
        break;
      case 'turn':
        metrics.observe('penstock_queue_wait_seconds', { environment, lane }, one.waitedMs / 1_000);
        break;
      case 'turn-refused':
        metrics.increment('penstock_queue_refusals_total', { environment, lane, code: one.code });
        break;
      case 'call':
        metrics.observe('penstock_upstream_duration_seconds', { environment, lane }, one.totalMs / 1_000);
        break;
      case 'retry':
        metrics.increment('penstock_retries_total', { environment, lane });
        break;
      case 'late-answer':
        metrics.increment('penstock_late_answers_total', { environment, operation });
        break;
      case 'environment':
      case 'circuit-refused':
      case 'caller-left':
      case 'recorded':
    }
  }

  return {
    onRequestEnd(decision) {
      const {
        asked,
        environment = noLabelValue,
        status,
        error,
        servedFrom = 'gateway',
        durationMs,
        steps,
      } = decision;
      const operation = asked?.operation ?? noLabelValue;
      metrics.increment('penstock_requests_total', {
        operation,
        environment,
        error: error?.code ?? noLabelValue,
        status: statusClasses[Math.floor(status / 100)] ?? noLabelValue,
        served_from: servedFrom,
      });
      if (asked && durationMs !== undefined) {
        const labels = { operation, served_from: servedFrom };
        metrics.observe('penstock_request_duration_seconds', labels, durationMs / 1_000);
      }
      for (const step of steps) countEvent(step.event, decision);
    },
    onLateEvent: countEvent,
  };
}
