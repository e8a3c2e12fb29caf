/** Turns in a token bucket as arithmetic: the generic cell rate algorithm (ITU-T I.371 annex A), without a clock or a store. */

import type { BucketRate } from './ports.ts';

/** A turn that is booked. */
export interface BookedTurn {
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
 * A booked turn moves the TAT on by one interval; one that is refused leaves it. `bucketScript` does the same in Lua.
 *
 * @param theoreticalArrivalMs what the last booked turn left behind, if it is still remembered
 * @param rate      turns a second (> 0), and turns the bucket holds; it holds one at least
 * @param maxWaitMs longest acceptable wait
 * @returns the turn, or `undefined` if its wait would exceed `maxWaitMs`; then nothing is booked
 */
export function reserveTurn(
  theoreticalArrivalMs: number | undefined,
  nowMs: number,
  rate: BucketRate,
  maxWaitMs: number,
): BookedTurn | undefined {
  const intervalMs = 1000 / rate.perSecond;
  const toleranceMs = Math.max(0, rate.burst - 1) * intervalMs;
  const arrivalMs = Math.max(theoreticalArrivalMs ?? nowMs, nowMs);
  const waitMs = Math.max(0, arrivalMs - toleranceMs - nowMs);
  if (waitMs > maxWaitMs) return undefined;
  return { waitMs, theoreticalArrivalMs: arrivalMs + intervalMs };
}
