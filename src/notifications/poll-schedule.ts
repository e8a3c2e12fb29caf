/** When the status of a payment is polled next. */

import type { Finality } from '../pis/transaction-status.ts';

/** In milliseconds. */
export interface ScheduleSettings {
  /** How long a status is fresh in the cache: `statusCache.pendingTtl` and `settledTtl`. No poll is due before that. */
  readonly pendingTtl: number;
  readonly settledTtl: number;
  /** `notifications.maxInterval`. */
  readonly maxInterval: number;
}

/** As in the cache: a status that has not changed for ten seconds is unlikely to change within the next one. */
const intervalShare = 0.1;

/**
 * One poll is due at this time after the last change or write, whatever the interval: banks end an authorisation then that was not
 * completed. Milliseconds.
 */
const authorisationMs = 30 * 60_000;

/** The interval after the first failure; it doubles with each further one. Milliseconds. */
const firstRetryMs = 2_000;

/**
 * The time from one read of a status to the next one.
 *
 * @param finality       of the status
 * @param unchangedForMs how long the payment had this status when it was read
 * @returns milliseconds; `undefined` if the status is final
 */
export function pollIntervalMs(
  { pendingTtl, settledTtl, maxInterval }: ScheduleSettings,
  finality: Finality,
  unchangedForMs: number,
): number | undefined {
  if (finality === 'final') return undefined;
  const shortest = finality === 'settled' ? settledTtl : pendingTtl;
  const interval = Math.max(shortest, Math.min(maxInterval, unchangedForMs * intervalShare));
  const untilAuthorisationEnds = authorisationMs - unchangedForMs;
  return untilAuthorisationEnds > 0 ? Math.min(interval, untilAuthorisationEnds) : interval;
}

/**
 * The time after which a poll that has failed is repeated, in milliseconds.
 *
 * @param longestMs beyond which it does not grow
 * @param failures  in a row, at least one
 */
export const retryIntervalMs = (longestMs: number, failures: number): number =>
  Math.min(longestMs, firstRetryMs * 2 ** (failures - 1));
