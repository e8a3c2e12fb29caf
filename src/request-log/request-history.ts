/** The figures and the most frequent errors of all instances over a longer time. */

import { setImmediate } from 'node:timers/promises';
import type { RequestLog } from '../state/ports.ts';
import {
  emptySecond,
  type SecondCounts,
  type SecondStats,
  statsOfCounts,
  sumOfCounts,
} from '../telemetry/live-stats.ts';
import { decodeErrors, type ErrorCount, keyOf, mergeErrors } from './error-counts.ts';
import type { TenantNames } from './find-requests.ts';
import { decodeFigures, minuteIn } from './minute-figures.ts';
import type { RequestLogWriter } from './request-log-writer.ts';
import { clockMarginMs, sliceOf } from './slices.ts';

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
  readonly requestLog: Pick<RequestLog, 'readValues'>;
  readonly writer: RequestLogWriter;
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
/** How many slices are read at the same time: Redis does not answer in time if it must send more at once. */
const slicesPerRead = 24;
/** How many bytes of values are decoded in one turn of the event loop: ten instances have megabytes of them. */
const bytesPerTurn = 64 * 1024;

interface MinuteValue {
  /** The beginning of the minute: seconds since 1970. */
  readonly at: number;
  readonly value: Buffer;
}

export function createRequestHistory({
  requestLog,
  writer,
  keepFor,
  tenants,
  now = Date.now,
}: HistoryDependencies): RequestHistory {
  /** The values of all minutes from `fromSeconds` to `toSeconds`. They may also be in the slice behind that of their minute. */
  async function valuesOf(
    group: 'figures' | 'errors',
    fromSeconds: number,
    toSeconds: number,
  ): Promise<readonly MinuteValue[]> {
    await writer.flush(); // if it fails, the reads fail as well
    const first = sliceOf(fromSeconds * 1_000);
    const last = Math.min(sliceOf(toSeconds * 1_000) + 1, sliceOf(now() + clockMarginMs));
    const values = new Map<string, MinuteValue>();
    for (let start = first; start <= last; start += slicesPerRead) {
      const count = Math.min(slicesPerRead, last - start + 1);
      const slices = Array.from({ length: count }, (_, index) => start + index);
      const all = await Promise.all(slices.map((slice) => requestLog.readValues(slice, group)));
      for (const [name, value] of all.flatMap((each) => [...each])) {
        const at = minuteIn(name);
        // The value in a later slice is the newer one of the same minute and instance.
        if (at >= fromSeconds && at <= toSeconds) values.set(name, { at, value });
      }
      await setImmediate();
    }
    return [...values.values()];
  }

  return {
    async figures(fromMs, toMs) {
      const nowMs = now();
      const firstSecond = Math.floor(Math.max(fromMs, nowMs - keepFor()) / 1_000);
      const lastSecond = Math.floor(Math.min(toMs, nowMs) / 1_000);
      const seconds = Math.max(0, lastSecond - firstSecond);
      const resolution = resolutions.find((each) => seconds / each <= maxPoints) ?? 86_400;
      const first = firstSecond - (firstSecond % resolution);
      const minutes = await valuesOf('figures', first, lastSecond);
      const byPoint = new Map<number, SecondCounts[]>();
      await inTurns(minutes, ({ at, value }) => {
        const point = at - (at % resolution);
        const counts = byPoint.get(point) ?? [];
        byPoint.set(point, counts);
        counts.push(decodeFigures(at, value));
      });
      const points: SecondStats[] = [];
      for (let at = first; at <= lastSecond; at += resolution) {
        const counts = byPoint.get(at);
        points.push(statsOfCounts(counts ? sumOfCounts(at, counts) : emptySecond(at)));
        if (counts) await setImmediate();
      }
      return { resolutionSeconds: resolution, points };
    },

    async errors() {
      const nowSeconds = Math.floor(now() / 1_000);
      const minutes = await valuesOf('errors', nowSeconds - errorSeconds, nowSeconds);
      const sums = new Map<string, ErrorCount>();
      await inTurns(minutes, ({ value }) => {
        for (const stored of decodeErrors(value)) {
          const { tenant } = stored;
          const error = { ...stored, tenant: tenant === null ? null : tenants.nameOf(tenant) };
          const key = keyOf(error);
          const known = sums.get(key);
          sums.set(key, known ? mergeErrors(known, error) : error);
        }
      });
      return [...sums.values()]
        .toSorted((one, other) => other.count - one.count || other.lastAtMs - one.lastAtMs)
        .slice(0, maxErrors);
    },
  };
}

/** Calls `use` with all values, and lets the process serve requests in between. */
async function inTurns(values: readonly MinuteValue[], use: (value: MinuteValue) => void): Promise<void> {
  let bytes = 0;
  for (const each of values) {
    use(each);
    bytes += each.value.length;
    if (bytes < bytesPerTurn) continue;
    bytes = 0;
    await setImmediate();
  }
}
