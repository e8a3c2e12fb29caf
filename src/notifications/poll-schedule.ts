/** When the status of a payment is polled next. */

import type { Finality } from '../pis/transaction-status.ts';

/** In milliseconds. */
export interface ScheduleSettings {
  /** How long a status is fresh in the cache: `statusCache.pendingTtl` and `settledTtl`. */
  readonly pendingTtl: number;
  readonly settledTtl: number;
  /** `notifications.maxInterval`. */
  readonly maxInterval: number;
}

/** A status that was read. Times in milliseconds, at that moment. */
export interface PolledStatus {
  readonly finality: Finality;
  /** How long the payment had this status. */
  readonly unchangedForMs: number;
  /** Whether the status of the product changes within seconds. */
  readonly isInstant: boolean;
  /** Since an authorisation was started; `undefined`: none was, or it is not known. */
  readonly authorisingForMs: number | undefined;
}

/** As in the cache: a status that has not changed for ten seconds is unlikely to change within the next one. */
const intervalShare = 0.1;

/** The first interval of an instant payment, whatever the cache does: a poll reads past it. Milliseconds. */
const instantMs = 1_000;

/** One poll is due then, whatever the interval: banks end an authorisation that was not completed. Milliseconds. */
const authorisationMs = 30 * 60_000;

/** The interval after the first failure; it doubles with each further one. Milliseconds. */
const firstRetryMs = 2_000;

/** The time from one read of a status to the next one. @returns milliseconds; `undefined` if the status is final */
export function pollIntervalMs(
  { pendingTtl, settledTtl, maxInterval }: ScheduleSettings,
  { finality, unchangedForMs, isInstant, authorisingForMs = authorisationMs }: PolledStatus,
): number | undefined {
  if (finality === 'final') return undefined;
  const ttl = finality === 'settled' ? settledTtl : pendingTtl;
  const shortest = isInstant ? Math.min(instantMs, ttl) : ttl;
  const interval = Math.max(shortest, Math.min(maxInterval, unchangedForMs * intervalShare));
  const untilAuthorisationEnds = authorisationMs - authorisingForMs;
  return untilAuthorisationEnds > 0 ? Math.min(interval, untilAuthorisationEnds) : interval;
}

/** `instant-sepa-credit-transfers`, also in XML, and national products named alike. */
export const isInstantProduct = (paymentProduct: string): boolean => /(?:^|-)instant-/.test(paymentProduct);

/**
 * The time after which a poll that has failed is repeated, in milliseconds.
 *
 * @param longestMs beyond which it does not grow
 * @param failures  in a row, at least one
 */
export const retryIntervalMs = (longestMs: number, failures: number): number =>
  Math.min(longestMs, firstRetryMs * 2 ** (failures - 1));
