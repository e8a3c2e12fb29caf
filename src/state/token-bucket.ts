/** Token bucket arithmetic: the generic cell rate algorithm (ITU-T I.371 annex A), without a clock or a store. */

import type { BucketRate, TakeResult } from './ports.ts';

/**
 * How far the TAT may lie ahead in addition to what the current rate explains. Milliseconds.
 *
 * It covers one permit at the slowest rate to which an environment is throttled, one in 10 s (adaptive-rate.ts): instances
 * learn at different times that the rate has changed. It also covers the few permits that instances take before the shared
 * bucket answers, or while it cannot be reached.
 */
export const aheadMarginMs = 10_000;

/** A reserved permit. */
export interface PermitReservation {
  /** Milliseconds until the permit becomes valid; 0 = now. */
  readonly waitMs: number;
  /** The new state of the bucket, on the clock of `nowMs`. At that time the bucket is full, and the value can be dropped. */
  readonly theoreticalArrivalMs: number;
}

/**
 * Reserves the next permit of a bucket, whose only state is its theoretical arrival time (TAT).
 *
 * The bucket issues a permit every `interval` = 1 s / perSecond. If permits are taken at exactly that rate, the next one
 * is due at the TAT. An idle bucket saves up no more than it holds, so a TAT in the past counts as now:
 *
 *     arrival = max(TAT, now)
 *
 * A request may be early by up to `tolerance` = (burst - 1) * interval. An idle bucket then issues exactly `burst`
 * permits at once: the n-th finds arrival = now + (n - 1) * interval. An earlier request waits:
 *
 *     wait = max(0, arrival - tolerance - now)
 *
 * A reservation moves the TAT on by one interval; a refusal leaves it unchanged. redis-scripts.ts does the same in Lua.
 *
 * The settings move the TAT ahead by at most
 *
 *     longest wait + tolerance + interval + margin
 *
 * A TAT beyond that was stored before the clock was set back. It would keep the bucket closed until the clock reaches it,
 * so it counts as now + tolerance: one permit is available now, and the next ones follow at the rate, because the burst
 * may just have been issued.
 *
 * @param theoreticalArrivalMs what the previous reservation returned, if it is still stored
 * @param rate      permits per second (> 0) and bucket size; the size counts as at least 1
 * @param maxWaitMs longest acceptable wait
 * @returns the reservation, or `undefined` if its wait would exceed `maxWaitMs`; then nothing is reserved
 */
export function reservePermit(
  theoreticalArrivalMs: number | undefined,
  nowMs: number,
  rate: BucketRate,
  maxWaitMs: number,
): PermitReservation | undefined {
  const { intervalMs, toleranceMs } = timingOf(rate);
  const { longestAheadMs = maxWaitMs + toleranceMs } = rate;
  const storedMs = Math.max(theoreticalArrivalMs ?? nowMs, nowMs);
  const isClockSetBack = storedMs - nowMs > longestAheadMs + intervalMs + aheadMarginMs;
  const arrivalMs = isClockSetBack ? nowMs + toleranceMs : storedMs;
  const waitMs = Math.max(0, arrivalMs - toleranceMs - nowMs);
  if (waitMs > maxWaitMs) return undefined;
  return { waitMs, theoreticalArrivalMs: arrivalMs + intervalMs };
}

/**
 * The fill level of a bucket after an attempt to take a permit now. It follows from how far the TAT lies ahead: 0 means
 * full. A permit is available while the TAT is at most `tolerance` ahead, and each permit moves it on by one interval:
 *
 *     remaining = floor((tolerance - ahead) / interval) + 1
 *
 * @param aheadMs how far the theoretical arrival time lies ahead, after the permit if one was taken
 */
export function takeResultOf(taken: boolean, aheadMs: number, rate: BucketRate): TakeResult {
  const { intervalMs, toleranceMs } = timingOf(rate);
  const roundingMs = intervalMs * 1e-6; // sums of intervals are inexact; that must not cost a whole permit
  const remaining = Math.floor((toleranceMs - aheadMs + roundingMs) / intervalMs) + 1;
  const nextMs = aheadMs - toleranceMs;
  return {
    taken,
    remaining: Math.max(0, remaining),
    nextPermitMs: nextMs > roundingMs ? nextMs : 0,
    fullInMs: aheadMs,
  };
}

/** The time between two permits, and how early a request may be. Milliseconds. */
function timingOf({ perSecond, burst }: BucketRate): {
  readonly intervalMs: number;
  readonly toleranceMs: number;
} {
  const intervalMs = 1000 / perSecond;
  return { intervalMs, toleranceMs: Math.max(0, burst - 1) * intervalMs };
}

/** The part of a rate that one of several instances may use alone. @param share 0 to 1 */
export const shareOf = (rate: BucketRate, share: number): BucketRate =>
  share === 1 ? rate : { ...rate, perSecond: rate.perSecond * share, burst: Math.max(1, rate.burst * share) };
