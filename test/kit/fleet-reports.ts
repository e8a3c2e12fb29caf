/** Reports as the instances of a fleet send them. */

import type { InstanceReport } from '../../src/telemetry/fleet-messages.ts';
import { emptySecond, type SecondCounts } from '../../src/telemetry/live-stats.ts';

/** The report of an idle instance. @param atMs milliseconds since 1970 */
export const instanceReport = (
  name: string,
  atMs: number,
  more: Partial<InstanceReport> = {},
): InstanceReport => ({
  id: name,
  name,
  version: '0.1.0',
  since: '2026-01-31T12:00:00.000Z',
  at: new Date(atMs).toISOString(),
  ready: true,
  reasons: [],
  figures: {
    ...{ requestsPerSecond: 0, refusedPerSecond: 0, failedPerSecond: 0, p50Ms: null, p99Ms: null },
    ...{ waiting: 0, inFlight: 0, waits: 0, streams: 0, pollsPerSecond: 0, overduePolls: 0 },
    ...{ cpuPercent: 0.5, memoryBytes: 100_000_000, eventLoopDelayMs: 0 },
  },
  circuits: [],
  queues: [],
  ...more,
});

/** A second with that many requests of this duration bucket. */
export const secondWith = (at: number, requests: number, bucket = 100): SecondCounts => ({
  ...emptySecond(at),
  requests,
  durations: requests > 0 ? [[bucket, requests]] : [],
});
