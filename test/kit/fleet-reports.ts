/** Reports of the instances of a fleet. */

import type { InstanceReport } from '../../src/telemetry/fleet-reports.ts';
import { emptySecond, type SecondCounts } from '../../src/telemetry/live-stats.ts';

/** The report of an idle instance. */
export const instanceReport = (more: Partial<InstanceReport> = {}): InstanceReport => ({
  version: '0.1.0',
  configurationHash: 'a hash',
  ready: true,
  reasons: [],
  figures: {
    ...{ requestsPerSecond: 0, refusedPerSecond: 0, failedPerSecond: 0, p50Ms: null, p99Ms: null },
    ...{ waiting: 0, inFlight: 0, waits: 0, streams: 0, pollsPerSecond: 0, overduePolls: 0 },
    ...{ cpuPercent: 0.5, memoryBytes: 100_000_000, eventLoopDelayMs: 0 },
  },
  circuits: [],
  queues: [],
  alerts: [],
  reload: null,
  ...more,
});

/** A second with that many requests of this duration bucket. */
export const secondWith = (at: number, requests: number, bucket = 100): SecondCounts => ({
  ...emptySecond(at),
  requests,
  durations: requests > 0 ? [[bucket, requests]] : [],
});
