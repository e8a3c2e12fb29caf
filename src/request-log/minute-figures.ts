/** The figures of each minute, of one instance: as one value of the request log, which is replaced while the minute lasts. */

import type { LogValue } from '../state/ports.ts';
import { emptySecond, type SecondCounts, sumOfCounts } from '../telemetry/live-stats.ts';
import { ByteReader, ByteWriter } from './byte-writer.ts';

export interface MinuteFigures {
  /** @param seconds that have ended; those that were added already are ignored */
  add(seconds: readonly SecondCounts[]): void;
  /** The values that have changed since the last call. */
  takeChanged(): readonly LogValue[];
}

/** The first byte of a value. */
const formatVersion = 1;
export const secondsPerMinute = 60;

export function createMinuteFigures(instance: string): MinuteFigures {
  /** `at` is the beginning of the minute: seconds since 1970. */
  let minutes: readonly SecondCounts[] = [];
  let changed = new Set<number>();
  let lastSecond = 0;
  return {
    add(seconds) {
      for (const second of seconds) {
        if (second.at <= lastSecond) continue;
        lastSecond = second.at;
        if (second.requests === 0) continue;
        const at = minuteOf(second.at);
        const sum = sumOfCounts(at, [...minutes.filter((one) => one.at === at), second]);
        minutes = [...minutes.filter((one) => one.at !== at), sum];
        changed.add(at);
      }
    },
    takeChanged() {
      const values = minutes
        .filter(({ at }) => changed.has(at))
        .map((counts) => toLogValue(instance, counts));
      changed = new Set();
      minutes = minutes.filter(({ at }) => at + secondsPerMinute > lastSecond);
      return values;
    },
  };
}

const toLogValue = (instance: string, counts: SecondCounts): LogValue => ({
  group: 'figures',
  name: minuteName(counts.at, instance),
  value: encode(counts),
});

/** The beginning of the minute of a second: seconds since 1970. */
export const minuteOf = (second: number): number => second - (second % secondsPerMinute);

/** The name of the value of a minute. @param at the beginning of the minute: seconds since 1970 */
export const minuteName = (at: number, instance: string): string => `${at} ${instance}`;

/** The beginning of the minute in a `minuteName`: seconds since 1970. */
export const minuteIn = (name: string): number => Number.parseInt(name, 10);

function encode({ requests, refused, failed, cache, durations }: SecondCounts): Buffer {
  const bytes = new ByteWriter();
  const { hit, stale, shared, miss, bypass } = cache;
  for (const number of [formatVersion, requests, refused, failed, hit, stale, shared, miss, bypass])
    bytes.integer(number);
  let previous = 0;
  for (const [bucket, count] of durations) {
    bytes.integer(bucket - previous);
    bytes.integer(count);
    previous = bucket;
  }
  return bytes.copy();
}

/** @returns no requests if the bytes are no value of this version */
export function decodeFigures(at: number, bytes: Buffer): SecondCounts {
  try {
    const reader = new ByteReader(bytes);
    if (reader.integer() !== formatVersion) return emptySecond(at);
    const [requests, refused, failed] = [reader.integer(), reader.integer(), reader.integer()];
    const [hit, stale, shared] = [reader.integer(), reader.integer(), reader.integer()];
    const cache = { hit, stale, shared, miss: reader.integer(), bypass: reader.integer() };
    const durations: [number, number][] = [];
    let bucket = 0;
    while (!reader.isAtEnd) {
      bucket += reader.integer();
      durations.push([bucket, reader.integer()]);
    }
    return { at, requests, refused, failed, cache, durations };
  } catch (thrown) {
    if (thrown instanceof RangeError) return emptySecond(at);
    throw thrown;
  }
}
