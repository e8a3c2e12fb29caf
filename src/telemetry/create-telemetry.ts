/** Puts together whatever is told of requests: the log, the metrics, the last decisions, the live figures. */

import { createAccessLog } from './access-log.ts';
import { createLiveStats, type LiveStats } from './live-stats.ts';
import type { Log } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { StartTrace } from './observe.ts';
import { type Gauges, readGauges } from './read-gauges.ts';
import { createRecentRequests, type RecentRequests } from './recent-requests.ts';
import { createRequestMetrics } from './request-metrics.ts';
import { combineObservers, type RequestObserver } from './request-record.ts';
import { createTracing, type TracingSettings } from './tracing.ts';

export interface Telemetry {
  /** Told what became of every request. */
  readonly observer: Required<RequestObserver>;
  readonly metrics: Metrics;
  readonly recentRequests: RecentRequests;
  readonly liveStats: LiveStats;
  readonly startTrace: StartTrace | undefined;
  open(): Promise<void>;
  /** Sends the spans that are left. */
  close(): Promise<void>;
}

/** @param gauges what is looked at when the metrics are read */
export function createTelemetry(log: Log, settings: TracingSettings, gauges: Gauges): Telemetry {
  const metrics = createMetrics((all) => readGauges(all, gauges));
  const decisions = createRecentRequests();
  const figures = createLiveStats();
  const tracing = createTracing(settings, log);
  const observers = [createAccessLog(log), createRequestMetrics(metrics), decisions, figures];
  return {
    metrics,
    recentRequests: decisions,
    liveStats: figures,
    startTrace: tracing?.startTrace,
    observer: combineObservers(tracing ? [...observers, tracing] : observers),
    open: async () => tracing?.open(),
    close: async () => tracing?.close(),
  };
}
