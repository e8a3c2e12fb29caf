/** The figures and the most frequent errors of all instances over a longer time. */

import { setImmediate } from 'node:timers/promises';
import type { RequestRecordTable } from '../store/request-records.ts';
import {
  emptySecond,
  type SecondCounts,
  type SecondStats,
  statsOfCounts,
  sumOfCounts,
} from '../telemetry/live-stats.ts';
import { type ErrorCount, errorCountOf } from './error-counts.ts';
import type { TenantNames } from './find-requests.ts';
import { countsOf } from './minute-figures.ts';

export interface RequestHistory {
  /**
   * The figures of all instances. Times are milliseconds since 1970.
   *
   * @throws GatewayError STATE_UNAVAILABLE (here and below)
   */
  figures(fromMs: number, toMs: number): Promise<History>;
  /** The errors of the last hour, the most frequent first, with the names of the tenants. */
  errors(): Promise<readonly ErrorCount[]>;
}

export interface History {
  readonly resolutionSeconds: number;
  /** Oldest first, without gaps; `at` is the beginning: seconds since 1970. */
  readonly points: readonly SecondStats[];
}

interface HistoryDependencies {
  readonly table: Pick<RequestRecordTable, 'figures' | 'errors'>;
  /** Stores what has ended so far. Never rejects. */
  readonly flush: () => Promise<unknown>;
  /** Milliseconds. */
  readonly keepFor: () => number;
  readonly tenants: Pick<TenantNames, 'nameOf'>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The shortest resolution with at most `maxPoints` points is used. Seconds. */
const resolutions = [60, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400];
const maxPoints = 360;
const errorSeconds = 3_600;
const maxErrors = 100;
/** How many minutes are read at once: ten instances have megabytes of figures. */
const minutesPerRead = 120;

export function createRequestHistory({
  table,
  flush,
  keepFor,
  tenants,
  now = Date.now,
}: HistoryDependencies): RequestHistory {
  /** By the beginning of the point. */
  async function readPoints(
    first: number,
    last: number,
    resolution: number,
  ): Promise<ReadonlyMap<number, SecondCounts>> {
    const points = new Map<number, SecondCounts>();
    for (let from = first; from <= last; from += minutesPerRead * 60) {
      const rows = await table.figures(from, Math.min(last, from + minutesPerRead * 60 - 1));
      for (const counts of rows.map(countsOf)) {
        const at = counts.at - (counts.at % resolution);
        const known = points.get(at);
        points.set(at, sumOfCounts(at, known ? [known, counts] : [counts]));
      }
      await setImmediate(); // so that requests are served in between
    }
    return points;
  }

  return {
    async figures(fromMs, toMs) {
      await flush(); // if it fails, the read fails as well
      const firstSecond = Math.floor(Math.max(fromMs, now() - keepFor()) / 1_000);
      const lastSecond = Math.floor(Math.min(toMs, now()) / 1_000);
      const seconds = Math.max(0, lastSecond - firstSecond);
      const resolution = resolutions.find((each) => seconds / each <= maxPoints) ?? 86_400;
      const first = firstSecond - (firstSecond % resolution);
      const sums = await readPoints(first, lastSecond, resolution);
      const points: SecondStats[] = [];
      for (let at = first; at <= lastSecond; at += resolution)
        points.push(statsOfCounts(sums.get(at) ?? emptySecond(at)));
      return { resolutionSeconds: resolution, points };
    },

    async errors() {
      await flush();
      const rows = await table.errors(Math.floor(now() / 1_000) - errorSeconds, maxErrors);
      return rows.map((row) => errorCountOf(row, tenants.nameOf));
    },
  };
}
