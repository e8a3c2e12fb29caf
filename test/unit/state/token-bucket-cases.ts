/** The expected behaviour of a token bucket: one table for the arithmetic in TypeScript and for the script in Lua. */

import type { BucketRate } from '../../../src/state/ports.ts';

/** Consecutive requests to one bucket. The rates are so low that real time between two requests does not matter. */
export interface TokenBucketCase {
  readonly name: string;
  /** For each: time of the request, rate, longest acceptable wait, and the expected wait; all in ms. */
  readonly requests: readonly (readonly [
    atMs: number,
    rate: BucketRate,
    maxWaitMs: number,
    waitMs: number | undefined,
  ])[];
}

const oneIn10s: BucketRate = { perSecond: 0.1, burst: 1 };
const threeAtOnce: BucketRate = { perSecond: 0.1, burst: 3 };
/** A bucket that can be used up for 60 s: its burst, and the permits of the next 30 s. */
const upToAMinute: BucketRate = { ...threeAtOnce, longestAheadMs: 60_000 };
const hour = 3_600_000;
/** A realistic time of day in ms, with the microseconds of Redis. */
const today = 1_785_000_000_000.125;

export const tokenBucketCases: readonly TokenBucketCase[] = [
  {
    name: 'the first permit is available at once',
    requests: [[today, oneIn10s, 0, 0]],
  },
  {
    name: 'simultaneous requests get permits at even intervals',
    requests: [
      [0, oneIn10s, hour, 0],
      [0, oneIn10s, hour, 10_000],
      [0, oneIn10s, hour, 20_000],
    ],
  },
  {
    name: 'requests at exactly the rate never wait',
    requests: [
      [today, oneIn10s, 0, 0],
      [today + 10_000, oneIn10s, 0, 0],
      [today + 20_000, oneIn10s, 0, 0],
    ],
  },
  {
    name: 'an early request waits for the rest of the interval',
    requests: [
      [1_000, oneIn10s, hour, 0],
      [4_500.5, oneIn10s, hour, 6_499.5],
      [21_000, oneIn10s, hour, 0],
    ],
  },
  {
    name: 'an idle bucket saves up no more than it holds',
    requests: [
      [0, oneIn10s, hour, 0],
      [hour, oneIn10s, hour, 0],
      [hour, oneIn10s, hour, 10_000],
    ],
  },
  {
    name: 'a full bucket issues its burst at once',
    requests: [
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, hour, 10_000],
      [0, threeAtOnce, hour, 20_000],
    ],
  },
  {
    name: 'a bucket refills by one permit per interval',
    requests: [
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, 0, 0],
      [20_000, threeAtOnce, 0, 0],
      [20_000, threeAtOnce, 0, 0],
      [20_000, threeAtOnce, 0, undefined],
    ],
  },
  {
    name: 'a wait equal to the longest acceptable one is reserved, a longer one is refused',
    requests: [
      [0, oneIn10s, hour, 0],
      [0, oneIn10s, 9_999.75, undefined],
      [0, oneIn10s, 9_999.75, undefined],
      [0, oneIn10s, 10_000, 10_000],
      [0, oneIn10s, 20_000, 20_000],
    ],
  },
  {
    name: 'a burst below one counts as one',
    requests: [
      [0, { perSecond: 0.1, burst: 0.25 }, 0, 0],
      [0, { perSecond: 0.1, burst: 0.25 }, hour, 10_000],
    ],
  },
  {
    name: 'the burst may be a fraction',
    requests: [
      [0, { perSecond: 0.1, burst: 1.5 }, 0, 0],
      [0, { perSecond: 0.1, burst: 1.5 }, hour, 5_000],
    ],
  },
  {
    name: 'a changed rate applies from the next request on',
    requests: [
      [0, oneIn10s, hour, 0],
      [0, { perSecond: 0.05, burst: 1 }, hour, 10_000],
      [0, oneIn10s, hour, 30_000],
      [0, threeAtOnce, hour, 20_000],
    ],
  },
  {
    name: 'a clock that is set back by a minute makes nobody wait, and the next permits follow at the rate',
    requests: [
      ...[0, 0, 0, 10_000, 20_000, 30_000].map((waitMs) => [today, upToAMinute, 30_000, waitMs] as const),
      [today - 60_000, upToAMinute, 0, 0],
      [today - 60_000, upToAMinute, 0, undefined],
      [today - 60_000, upToAMinute, 30_000, 10_000],
      [today - 40_000, upToAMinute, 0, 0],
    ],
  },
  {
    name: 'a clock that is set back makes nobody wait although the call accepts no wait, as calls of a client quota do',
    requests: [
      [today, oneIn10s, 0, 0],
      [today - 60_000, oneIn10s, 0, 0],
      [today - 60_000, oneIn10s, 0, undefined],
    ],
  },
  {
    name: 'permits that were reserved by callers with a longer wait, or before the rate was lowered, stay reserved',
    requests: [
      ...[0, 0, 0, 10_000, 20_000, 30_000].map((waitMs) => [0, upToAMinute, 30_000, waitMs] as const),
      [0, upToAMinute, 0, undefined],
      [0, { ...upToAMinute, burst: 1 }, 0, undefined],
      [0, { ...upToAMinute, perSecond: 1, burst: 1 }, 0, undefined],
      [0, upToAMinute, 40_000, 40_000],
    ],
  },
  {
    name: 'the acceptable wait may be infinite',
    requests: [
      [today, oneIn10s, Number.POSITIVE_INFINITY, 0],
      [today, oneIn10s, Number.POSITIVE_INFINITY, 10_000],
    ],
  },
];
