/** Turns in a token bucket as arithmetic: the generic cell rate algorithm (ITU-T I.371 annex A), without a clock or a store. */

import type { BucketRate, TakeResult } from './ports.ts';

/** A turn that is booked. */
export interface PermitReservation {
  /** Milliseconds until the turn comes; 0 = now. */
  readonly waitMs: number;
  /** What to remember of the bucket, on the clock of `nowMs`. From then on it is full again and may be forgotten. */
  readonly theoreticalArrivalMs: number;
}

/**
 * Books the next turn of a bucket, of which one number is remembered: its theoretical arrival time.
 *
 * Turns come every `interval` = 1 s / perSecond. Were they taken evenly, the next one would be due at the
 * theoretical arrival time (TAT). A rest does not save up more than the bucket holds, so a TAT in the past is now:
 *
 *     arrival = max(TAT, now)
 *
 * Whoever is early by no more than `tolerance` may go. With tolerance = (burst - 1) * interval, exactly `burst`
 * turns may go at once after a rest: the n-th of them finds arrival = now + (n - 1) * interval. Who is earlier waits:
 *
 *     wait = max(0, arrival - tolerance - now)
 *
 * A booked turn moves the TAT on by one interval; one that is refused leaves it. redis-scripts.ts does the same in Lua.
 *
 * @param theoreticalArrivalMs what the last booked turn left behind, if it is still remembered
 * @param rate      turns a second (> 0), and turns the bucket holds; it holds one at least
 * @param maxWaitMs longest acceptable wait
 * @returns the turn, or `undefined` if its wait would exceed `maxWaitMs`; then nothing is booked
 */
export function reservePermit(
  theoreticalArrivalMs: number | undefined,
  nowMs: number,
  rate: BucketRate,
  maxWaitMs: number,
): PermitReservation | undefined {
  const { intervalMs, toleranceMs } = cadenceOf(rate);
  const arrivalMs = Math.max(theoreticalArrivalMs ?? nowMs, nowMs);
  const waitMs = Math.max(0, arrivalMs - toleranceMs - nowMs);
  if (waitMs > maxWaitMs) return undefined;
  return { waitMs, theoreticalArrivalMs: arrivalMs + intervalMs };
}

/**
 * What is told of a bucket that was asked for a turn now. Its fullness is how far its TAT lies ahead: 0 when it is full.
 * A turn is there as long as the TAT is no more than `tolerance` ahead, and each turn moves it on by one interval:
 *
 *     left = floor((tolerance - ahead) / interval) + 1
 *
 * @param aheadMs how far the theoretical arrival time lies ahead, after the turn if it was taken
 */
export function takeResultOf(taken: boolean, aheadMs: number, rate: BucketRate): TakeResult {
  const { intervalMs, toleranceMs } = cadenceOf(rate);
  const roundingMs = intervalMs * 1e-6; // sums of intervals are not exact: a whole turn must not be lost by that
  const left = Math.floor((toleranceMs - aheadMs + roundingMs) / intervalMs) + 1;
  const nextMs = aheadMs - toleranceMs;
  return {
    taken,
    remaining: Math.max(0, left),
    nextPermitMs: nextMs > roundingMs ? nextMs : 0,
    fullInMs: aheadMs,
  };
}

/** How far apart turns are, and how early one may be. Milliseconds. */
function cadenceOf({ perSecond, burst }: BucketRate): {
  readonly intervalMs: number;
  readonly toleranceMs: number;
} {
  const intervalMs = 1000 / perSecond;
  return { intervalMs, toleranceMs: Math.max(0, burst - 1) * intervalMs };
}
