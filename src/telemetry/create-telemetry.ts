/** Puts together whatever is told of requests: the log, the metrics, the last decisions, the live figures. */

import { countRequests } from './count-requests.ts';
import { type Observer, toAll } from './decision.ts';
import { createDecisions, type Decisions } from './decisions.ts';
import { createFigures, type Figures } from './figures.ts';
import type { Log } from './log.ts';
import { logRequests } from './log-requests.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { type Gauges, readGauges } from './read-gauges.ts';

export interface Telemetry {
  /** Told what became of every request. */
  readonly observer: Required<Observer>;
  readonly metrics: Metrics;
  readonly decisions: Decisions;
  readonly figures: Figures;
}

/** @param gauges what is looked at when the metrics are read */
export function createTelemetry(log: Log, gauges: Gauges): Telemetry {
  const metrics = createMetrics((all) => readGauges(all, gauges));
  const decisions = createDecisions();
  const figures = createFigures();
  const observer = toAll([logRequests(log), countRequests(metrics), decisions, figures]);
  return { observer, metrics, decisions, figures };
}
