/** Creates everything that observes requests: the log, the metrics, the records of requests, the live statistics, the traces. */

import type { TracingSettings } from '../config/schema.ts';
import { version } from '../version.ts';
import { createAccessLog } from './access-log.ts';
import { createLiveStats, type LiveStats } from './live-stats.ts';
import type { Log } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { StartTrace } from './observe.ts';
import { createRequestMetrics } from './request-metrics.ts';
import { combineObservers, type RequestObserver } from './request-record.ts';
import { createTracing } from './tracing.ts';
import { createUnstoredRequests, type UnstoredRequests } from './unstored-requests.ts';

export interface Telemetry {
  readonly log: Log;
  /** Passes every request to all observers. */
  readonly observer: Required<RequestObserver>;
  readonly metrics: Metrics;
  readonly unstoredRequests: UnstoredRequests;
  readonly liveStats: LiveStats;
  /** `undefined` if tracing is off. */
  readonly startTrace: StartTrace | undefined;
  open(): Promise<void>;
  /** Exports the remaining spans. */
  close(): Promise<void>;
}

export function createTelemetry(log: Log, settings: TracingSettings): Telemetry {
  const metrics = createMetrics();
  metrics.set('penstock_build_info', { version, node: process.version }, 1);
  const unstoredRequests = createUnstoredRequests();
  const liveStats = createLiveStats();
  const tracing = createTracing(settings, log);
  const observers = [createAccessLog(log), createRequestMetrics(metrics), unstoredRequests, liveStats];
  return {
    log,
    metrics,
    unstoredRequests,
    liveStats,
    startTrace: tracing?.startTrace,
    observer: combineObservers(tracing ? [...observers, tracing] : observers),
    open: async () => tracing?.open(),
    close: async () => tracing?.close(),
  };
}
