/** Counts checks in the metrics, and announces that a bank has changed: in the log, in the timeline and as a metric. */

import type { Telemetry } from '../telemetry/create-telemetry.ts';
import type { Timeline } from '../telemetry/timeline.ts';
import type { CountedChecks, CountedDeviation } from './deviation-counts.ts';

interface CheckReporter {
  count(checks: CountedChecks): void;
  onChange(deviation: CountedDeviation): void;
}

export function createCheckReporter({
  metrics,
  log,
  timeline,
}: Pick<Telemetry, 'metrics' | 'log'> & { readonly timeline: Pick<Timeline, 'record'> }): CheckReporter {
  return {
    /** Without the checks against contracts of other environments, in which no request has failed yet. */
    count({ deviations, messages, skipped }) {
      for (const { environment, isOwn, operation, direction, level, count } of deviations)
        if (isOwn)
          metrics.increment(
            'penstock_contract_deviations_total',
            { environment, operation, direction, level },
            count,
          );
      for (const { environment, isOwn, direction, count } of messages)
        if (isOwn)
          metrics.increment(
            'penstock_contract_checks_total',
            { environment, direction, result: 'checked' },
            count,
          );
      for (const { environment, direction, reason, count } of skipped)
        metrics.increment(
          'penstock_contract_checks_total',
          { environment, direction, result: reason.replace('-', '_') },
          count,
        );
    },
    onChange({ environment, operation, path, rule, level, requestId }) {
      const text = `the bank has changed: answers to ${operation} have a new deviation from the standard: ${path} (${rule})`;
      log('warn', text, { environment, operation, path, rule, level, requestId });
      metrics.increment('penstock_contract_changes_total', { environment, operation });
      timeline.record({
        kind: 'contract',
        environment,
        text,
        details: { operation, path, rule, level, requestId },
      });
    },
  };
}
