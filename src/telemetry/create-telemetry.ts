/** Puts together whatever is told of requests: the log, the metrics, the last decisions, the live figures. */

import { countRequests } from './count-requests.ts';
import { type Observer, toAll } from './decision.ts';
import { createDecisions, type Decisions } from './decisions.ts';
import { createFigures, type Figures } from './figures.ts';
import type { Log } from './log.ts';
import { logRequests } from './log-requests.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { BeginTrace } from './observe.ts';
import { type Gauges, readGauges } from './read-gauges.ts';
import { createTracing, type TracingSettings } from './tracing.ts';

export interface Telemetry {
  /** Told what became of every request. */
  readonly observer: Required<Observer>;
  readonly metrics: Metrics;
  readonly decisions: Decisions;
  readonly figures: Figures;
  readonly beginTrace: BeginTrace | undefined;
  open(): Promise<void>;
  /** Sends the spans that are left. */
  close(): Promise<void>;
}

/** @param gauges what is looked at when the metrics are read */
export function createTelemetry(log: Log, settings: TracingSettings, gauges: Gauges): Telemetry {
  const metrics = createMetrics((all) => readGauges(all, gauges));
  const decisions = createDecisions();
  const figures = createFigures();
  const tracing = createTracing(settings, log);
  const observers = [logRequests(log), countRequests(metrics), decisions, figures];
  return {
    metrics,
    decisions,
    figures,
    beginTrace: tracing?.begin,
    observer: toAll(tracing ? [...observers, tracing] : observers),
    open: async () => tracing?.open(),
    close: async () => tracing?.close(),
  };
}
