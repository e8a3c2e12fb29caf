/** The figures of each minute, of one instance, as rows: a row is replaced while the minute lasts. */

import { z } from 'zod';
import { type Row, textOf } from '../store/database.ts';
import type { FigureRow, InitiationRow } from '../store/request-records.ts';
import { bucketCount, type SecondCounts, sumOfCounts } from '../telemetry/live-stats.ts';

export const secondsPerMinute = 60;

/** The beginning of the minute of a second: seconds since 1970. */
export const minuteOf = (second: number): number => second - (second % secondsPerMinute);

interface ChangedRows {
  readonly figures: readonly FigureRow[];
  readonly initiations: readonly InitiationRow[];
}

export function createMinuteFigures(instance: string) {
  /** By the beginning of the minute: seconds since 1970. */
  const minutes = new Map<number, SecondCounts>();
  let lastSecond = 0;
  return {
    /**
     * @param seconds that have ended; those that were added already are ignored
     * @returns the rows that have changed
     */
    add(seconds: readonly SecondCounts[]): ChangedRows {
      const changed = new Set<number>();
      for (const second of seconds) {
        if (second.at <= lastSecond) continue;
        lastSecond = second.at;
        if (second.requests === 0) continue;
        const at = minuteOf(second.at);
        const known = minutes.get(at);
        minutes.set(at, sumOfCounts(at, known ? [known, second] : [second]));
        changed.add(at);
      }
      const counts = [...changed].flatMap((at) => minutes.get(at) ?? []);
      for (const at of minutes.keys()) if (at + secondsPerMinute <= lastSecond) minutes.delete(at);
      return {
        figures: counts.map((one) => rowOf(instance, one)),
        initiations: counts.flatMap((one) => initiationRowsOf(instance, one)),
      };
    },
  };
}

const initiationRowsOf = (instance: string, { at, initiations }: SecondCounts): readonly InitiationRow[] =>
  initiations.map(({ count, bankMs, tenants: _, ...initiation }) => ({
    ...{ minute: at, instance, ...initiation },
    ...{ requests: count, bank_ms: bankMs },
  }));

const rowOf = (
  instance: string,
  { at, requests, refused, failed, cache, durations }: SecondCounts,
): FigureRow => ({
  minute: at,
  instance,
  requests,
  refused,
  failed,
  ...cache,
  durations: JSON.stringify(durations),
});

const count = z.number();
const storedDurations = z.array(
  z.tuple([
    z
      .int()
      .min(0)
      .max(bucketCount - 1),
    count,
  ]),
);

/** Without the initiations. @param row of `minute_figure` */
export function countsOf(row: Row): SecondCounts {
  const number = (column: string) => Number(row[column]);
  return {
    at: number('minute'),
    requests: number('requests'),
    refused: number('refused'),
    failed: number('failed'),
    cache: {
      hit: number('hit'),
      stale: number('stale'),
      shared: number('shared'),
      miss: number('miss'),
      bypass: number('bypass'),
    },
    durations: storedDurations.parse(JSON.parse(textOf(row.durations) ?? '[]')),
    initiations: [],
  };
}
