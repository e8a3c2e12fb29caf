/** When a subscription is read next. */

import { paymentContentOf } from './notification-content.ts';
import { isInstantProduct, pollIntervalMs, retryIntervalMs, type ScheduleSettings } from './poll-schedule.ts';
import { hasUnreported, runningAuthorisations, type Subscription, settledForMs } from './subscription.ts';

/**
 * The time from one read to the next one.
 *
 * @param atMs of the read: milliseconds since 1970
 * @returns milliseconds; `undefined` if nothing is to be read, unless an authorisation is started
 */
export function subscriptionIntervalMs(
  schedule: ScheduleSettings,
  subscription: Subscription,
  atMs: number,
): number | undefined {
  const { content, paymentProduct, status, failedReads = 0, authorisedAt } = subscription;
  if (failedReads > 0) return retryIntervalMs(schedule.maxInterval, failedReads);
  const running = runningAuthorisations(subscription);
  const isIdle = running.length === 0 && !hasUnreported(subscription);
  if (paymentContentOf(content) === undefined && isIdle) return undefined;
  const finality = status?.finality ?? 'pending';
  const since = Math.max(status?.since ?? atMs, authorisedAt ?? 0, ...running.map((one) => one.since));
  const interval = pollIntervalMs(schedule, {
    finality: finality === 'settled' && running.length > 0 ? 'pending' : finality,
    unchangedForMs: Math.max(0, atMs - since),
    isInstant: isInstantProduct(paymentProduct),
    authorisingForMs: authorisedAt === undefined ? undefined : atMs - authorisedAt,
  });
  const isLast = paymentContentOf(content) === 'LAST' && finality === 'settled' && status;
  const untilLastMs = isLast ? status.since + settledForMs - atMs : 0;
  return interval !== undefined && untilLastMs > 0 ? Math.min(interval, untilLastMs) : interval;
}
