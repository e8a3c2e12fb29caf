/** What a token bucket answers: one table for the arithmetic in TypeScript and for the one in Lua. */

import type { BucketRate } from '../../../src/state/ports.ts';

/** Turns asked for one after the other from one bucket. The rates are low: no bucket is full again in real time. */
export interface TokenBucketCase {
  readonly name: string;
  /** Each: when it is asked for, at which rate, how long the asker can wait, and the answer; all in ms. */
  readonly requests: readonly (readonly [
    atMs: number,
    rate: BucketRate,
    maxWaitMs: number,
    waitMs: number | undefined,
  ])[];
}

const oneIn10s: BucketRate = { perSecond: 0.1, burst: 1 };
const threeAtOnce: BucketRate = { perSecond: 0.1, burst: 3 };
const hour = 3_600_000;
/** About today, in ms, with the microseconds of Redis. */
const today = 1_785_000_000_000.125;

export const tokenBucketCases: readonly TokenBucketCase[] = [
  {
    name: 'the first turn comes at once',
    requests: [[today, oneIn10s, 0, 0]],
  },
  {
    name: 'turns asked for at once come evenly',
    requests: [
      [0, oneIn10s, hour, 0],
      [0, oneIn10s, hour, 10_000],
      [0, oneIn10s, hour, 20_000],
    ],
  },
  {
    name: 'turns asked for evenly never wait',
    requests: [
      [today, oneIn10s, 0, 0],
      [today + 10_000, oneIn10s, 0, 0],
      [today + 20_000, oneIn10s, 0, 0],
    ],
  },
  {
    name: 'who comes early waits for the rest of the interval',
    requests: [
      [1_000, oneIn10s, hour, 0],
      [4_500.5, oneIn10s, hour, 6_499.5],
      [21_000, oneIn10s, hour, 0],
    ],
  },
  {
    name: 'who comes late saves up no more than the bucket holds',
    requests: [
      [0, oneIn10s, hour, 0],
      [hour, oneIn10s, hour, 0],
      [hour, oneIn10s, hour, 10_000],
    ],
  },
  {
    name: 'as many turns as the bucket holds come at once',
    requests: [
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, 0, 0],
      [0, threeAtOnce, hour, 10_000],
      [0, threeAtOnce, hour, 20_000],
    ],
  },
  {
    name: 'a bucket fills again one turn an interval',
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
    name: 'a wait exactly as long as acceptable is booked, a longer one is not',
    requests: [
      [0, oneIn10s, hour, 0],
      [0, oneIn10s, 9_999.75, undefined],
      [0, oneIn10s, 9_999.75, undefined],
      [0, oneIn10s, 10_000, 10_000],
      [0, oneIn10s, 20_000, 20_000],
    ],
  },
  {
    name: 'a bucket that holds less than one turn holds one',
    requests: [
      [0, { perSecond: 0.1, burst: 0.25 }, 0, 0],
      [0, { perSecond: 0.1, burst: 0.25 }, hour, 10_000],
    ],
  },
  {
    name: 'a bucket may hold a fraction more than whole turns',
    requests: [
      [0, { perSecond: 0.1, burst: 1.5 }, 0, 0],
      [0, { perSecond: 0.1, burst: 1.5 }, hour, 5_000],
    ],
  },
  {
    name: 'another rate holds from the next turn on',
    requests: [
      [0, oneIn10s, hour, 0],
      [0, { perSecond: 0.05, burst: 1 }, hour, 10_000],
      [0, oneIn10s, hour, 30_000],
      [0, threeAtOnce, hour, 20_000],
    ],
  },
  {
    name: 'who would wait for ever is served in the end',
    requests: [
      [today, oneIn10s, Number.POSITIVE_INFINITY, 0],
      [today, oneIn10s, Number.POSITIVE_INFINITY, 10_000],
    ],
  },
];
