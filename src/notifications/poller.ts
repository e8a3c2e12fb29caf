/**
 * Polls the status of each payment that has listeners, which are waiting reads and streams: one poller per tenant and payment, over
 * all instances.
 *
 * Each instance watches the payments of its own listeners. When a poll is due, the instances compete for a lease; the one that gets it
 * polls with the credentials of one of its own listeners. Reads of TPPs count as polls, because the cached payment contains the time
 * of the last read. While the shared state is unavailable, nothing is polled.
 */

import type { Finality } from '../pis/transaction-status.ts';
import { createLinkedList, type LinkedList } from '../request/linked-list.ts';
import type { PaymentOfTenant, RecordedStatus, ShownStatus, StatusEvents } from '../request/statuses.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { PollBudget, Urgency } from './poll-budget.ts';
import { isRefused, keptMsOf, maxKeptAfterFailureMs, type PaymentPolls } from './poll-payment.ts';
import {
  isInstantProduct,
  type PolledStatus,
  pollIntervalMs,
  retryIntervalMs,
  type ScheduleSettings,
} from './poll-schedule.ts';
import { haveSameCredentials, type PollTarget } from './poll-target.ts';
import type { PollPipeline, PollResult, StatusReads } from './status-reads.ts';

/** A waiting read or a stream that is notified when the status of its payment changes. */
export interface StatusListener {
  readonly urgency: Urgency;
  /** How to poll on its behalf. */
  readonly target: PollTarget;
  /** The last status that the listener has read. */
  known: ShownStatus;
  /** Whether the last poll of the payment by this instance has failed; written by the poller. */
  hasFailedPoll?: boolean;
  /** Called when the payment probably has another status: the listener reads it with its own credentials. */
  onChange(): void;
  /** Called when the bank does not accept the credentials of `target` any more. */
  onRefused(): void;
}

export interface Poller {
  /** @returns stops listening */
  listen(listener: StatusListener): () => void;
}

interface PollerDependencies {
  readonly polls: PaymentPolls;
  readonly events: Pick<StatusEvents, 'subscribe'>;
  readonly reads: Pick<StatusReads, 'current'>;
  readonly budget: Pick<PollBudget, 'take' | 'giveBack'>;
  readonly metrics: Pick<Metrics, 'increment'>;
  /** Milliseconds since 1970, by the clock of the status cache, which is never set back. */
  readonly now?: () => number;
}

/** A payment with listeners on this instance. */
interface Watch extends PaymentOfTenant {
  readonly isInstant: boolean;
  readonly listeners: LinkedList<StatusListener>;
  timer: NodeJS.Timeout | undefined;
  isChecking: boolean;
  /** Whether another check was requested since this one began. */
  isOutdated: boolean;
  /** Whether a poll waits for its permit, or for the bank. Checks continue. */
  isPolling: boolean;
  /** How many notifications the bank has sent, and how many of them before the last read, here or on another instance. */
  notifications: number;
  readNotifications: number;
  /** The last poll of this instance. Milliseconds since 1970. */
  polledAtMs: number;
  /** Failed polls in a row. */
  failures: number;
  /** How long the bank has asked to wait after the last failure. Milliseconds. */
  retryAfterMs: number;
  /** Whether the bank has refused the last poll (a 4xx other than 429). */
  isRefused: boolean;
  /** Whether the bank has refused the credentials of all listeners: nothing is polled until the TPP reads the status again. */
  isSuspended: boolean;
  /** The listeners whose credentials the bank has refused: a poll uses those of another listener, if there is one. */
  refused: WeakSet<StatusListener>;
  /** When the last message about a change was passed on. Milliseconds since 1970. */
  changedAtMs: number;
}

/** How often the cached payment is read, in case a message about a change was lost. Milliseconds. */
const checkMs = 10_000;
/** The same while the shared state is unavailable, or another instance polls. Milliseconds. */
const retryMs = 1_000;
/**
 * The minimum time between two notifications of the listeners of a payment, in which they read the status themselves. Otherwise, a bank
 * whose servers contradict each other would cause a read after each read. Milliseconds.
 */
const afterChangeMs = 1_000;
/** The longest interval after a failure: when the bank works again, the listeners get the status within this time. Milliseconds. */
const maxRetryMs = 60_000;
/** After a longer wait for a permit, the poller checks again whether the poll is still needed. Milliseconds. */
const longWaitMs = 50;
/** If the time of a read is further in the future, the clock of the instance that recorded it was wrong. Milliseconds. */
const maxClockSkewMs = 1_000;

export function createPoller({
  polls,
  events,
  reads,
  budget,
  metrics,
  now = Date.now,
}: PollerDependencies): Poller {
  /** Bounded: each watch has a listener, and the number of listeners is limited (status-listeners.ts). */
  const watches = new Map<string, Watch>();

  events.subscribe((event) => {
    const watch = watches.get(nameOf(event));
    if (!watch) return;
    const sinceLastMs = now() - watch.changedAtMs;
    if (event.what === 'pushed') watch.notifications += 1;
    if (event.what !== 'changed') void check(watch);
    else if (sinceLastMs < afterChangeMs) checkLater(watch, afterChangeMs - sinceLastMs);
    else onChanged(watch);
  });

  function onChanged(watch: Watch): void {
    watch.changedAtMs = now();
    notify(watch, () => true);
    checkLater(watch, afterChangeMs);
  }

  async function check(watch: Watch): Promise<void> {
    watch.isOutdated = true;
    if (watch.isChecking) return;
    clearTimeout(watch.timer);
    watch.isChecking = true;
    let nextMs = 0;
    while (watch.isOutdated) {
      watch.isOutdated = false;
      nextMs = await checkOnce(watch).catch(() => retryMs);
    }
    watch.isChecking = false;
    checkLater(watch, nextMs);
  }

  function checkLater(watch: Watch, ms: number): void {
    clearTimeout(watch.timer);
    if (watch.listeners.size() === 0 || watch.isChecking) return;
    watch.timer = setTimeout(() => void check(watch), Math.ceil(ms)).unref();
  }

  /** Compares what the listeners know with the cached payment, and polls if that is due. @returns milliseconds until the next check */
  async function checkOnce(watch: Watch): Promise<number> {
    const { current } = reads;
    const { notifications } = watch;
    const recorded = await current?.statuses.recorded(watch.paymentKey);
    if (!current || !recorded) return retryMs;
    if (recorded.hash !== undefined) notify(watch, ({ known }) => known.hash !== recorded.hash);
    if (watch.isPolling) return checkMs;
    const dueInMs = dueAtMs(current, watch, recorded) - now();
    if (dueInMs > 0) return Math.min(dueInMs, checkMs);
    startPoll(current, watch, recorded, notifications);
    return checkMs;
  }

  /**
   * Does not wait for its end: a message about the payment, or a new listener, is checked at once.
   *
   * @param notifications the notifications before the payment was read
   */
  function startPoll(
    current: PollPipeline,
    watch: Watch,
    recorded: RecordedStatus,
    notifications: number,
  ): void {
    watch.isPolling = true;
    const end = (nextMs: number) => {
      watch.isPolling = false;
      if (watch.isChecking) watch.isOutdated = true;
      else checkLater(watch, nextMs);
    };
    poll(current, watch, recorded, notifications).then(end, () => end(retryMs));
  }

  /** When the next poll is due. Milliseconds since 1970. */
  function dueAtMs({ schedule }: PollPipeline, watch: Watch, recorded: RecordedStatus): number {
    const storedAtMs = recorded.readAtMs > now() + maxClockSkewMs ? 0 : recorded.readAtMs;
    if (!watch.isRefused && storedAtMs > watch.polledAtMs) watch.failures = 0; // a TPP has read it since: the bank works
    if (watch.isSuspended) return Number.POSITIVE_INFINITY;
    if (watch.failures > 0) {
      const longestMs = watch.isRefused ? schedule.maxInterval : Math.min(schedule.maxInterval, maxRetryMs);
      const requestedMs = Math.min(schedule.maxInterval, watch.retryAfterMs);
      return watch.polledAtMs + Math.max(requestedMs, retryIntervalMs(longestMs, watch.failures));
    }
    if (recorded.hash === undefined || watch.notifications > watch.readNotifications) return 0;
    const readAtMs = Math.max(storedAtMs, watch.polledAtMs);
    const intervalMs = intervalMsOf(schedule, watch, recorded, readAtMs);
    return intervalMs === undefined ? Number.POSITIVE_INFINITY : readAtMs + intervalMs;
  }

  function intervalMsOf(
    schedule: ScheduleSettings,
    watch: Watch,
    { hash, sinceMs }: RecordedStatus,
    readAtMs: number,
  ): number | undefined {
    const known = watch.listeners.find((listener) => listener.known.hash === hash)?.known;
    return pollIntervalMs(schedule, polledStatus(watch, known?.finality ?? 'pending', readAtMs - sinceMs));
  }

  /** @returns milliseconds until the next check */
  async function poll(
    { schedule, statuses }: PollPipeline,
    watch: Watch,
    recorded: RecordedStatus,
    notifications: number,
  ): Promise<number> {
    const listener = mostUrgent(watch);
    if (!listener) return checkMs;
    const { target } = listener;
    const lease = await polls.takeLease(watch, recorded);
    if (!lease) {
      watch.readNotifications = notifications; // each notification begins a generation: the holder of the lease reads after it
      return retryMs;
    }
    const duePoll = { environment: target.environment, tenantId: watch.tenantId, urgency: listener.urgency };
    const askedAtMs = now();
    if (!(await budget.take(duePoll, () => watch.listeners.size() > 0))) {
      if (watch.listeners.size() > 0)
        metrics.increment('penstock_polls_total', { environment: target.environment, outcome: 'dropped' });
      await lease.release();
      return retryMs;
    }
    if (now() - askedAtMs > longWaitMs) {
      const latest = await statuses.recorded(watch.paymentKey);
      // After a write or a change, the lease has another name.
      if (latest?.generation !== recorded.generation || latest.readAtMs > recorded.readAtMs) {
        budget.giveBack(target.environment);
        await lease.release();
        return 0;
      }
    }
    const readAtMs = Math.max(recorded.readAtMs, watch.polledAtMs);
    const intervalMs = intervalMsOf(schedule, watch, recorded, readAtMs);
    watch.readNotifications = watch.notifications;
    const result = await polls.read({
      lease,
      target,
      recorded,
      isKnown: (hash) =>
        recorded.hash === undefined
          ? !watch.listeners.find(({ known }) => known.hash !== hash)
          : hash === recorded.hash,
      maxCachedAgeMs: watch.isInstant && intervalMs ? keptMsOf(intervalMs) : undefined,
      intervalMs: (read) => nextIntervalMs(schedule, watch, read, recorded.sinceMs),
    });
    watch.polledAtMs = now();
    return apply(watch, listener, result) ? afterChangeMs : 0;
  }

  /** @param sinceMs since when the payment had its status before */
  function nextIntervalMs(
    schedule: ScheduleSettings,
    watch: Watch,
    result: PollResult,
    sinceMs: number,
  ): number {
    if (result.kind !== 'status') return retryIntervalMs(maxKeptAfterFailureMs, watch.failures + 1);
    return pollIntervalMs(schedule, polledStatus(watch, result.shown.finality, now() - sinceMs)) ?? checkMs;
  }

  /** @param polled the listener whose credentials were used @returns whether a listener knows another status */
  function apply(watch: Watch, polled: StatusListener, result: PollResult): boolean {
    watch.failures = result.kind === 'status' ? 0 : watch.failures + 1;
    watch.retryAfterMs = (result.kind === 'failed' && result.retryAfterMs) || 0;
    watch.isRefused = isRefused(result);
    for (const listener of watch.listeners.toArray()) listener.hasFailedPoll = result.kind !== 'status';
    if (watch.isRefused) refuse(watch, polled.target, result.kind === 'refused');
    if (result.kind !== 'status') return false;
    if (watch.refused.has(polled)) watch.refused = new WeakSet();
    return notify(watch, ({ known }) => known.hash !== result.shown.hash);
  }

  /** @param isSuspending whether to stop polling if no listener has other credentials */
  function refuse(watch: Watch, target: PollTarget, isSuspending: boolean): void {
    const listeners = watch.listeners.toArray();
    const refused = listeners.filter((listener) => haveSameCredentials(listener.target, target));
    for (const listener of refused) watch.refused.add(listener);
    const hasOthers = listeners.some((listener) => !watch.refused.has(listener));
    if (hasOthers) watch.failures = 1; // the next poll has other credentials
    watch.isSuspended = isSuspending && !hasOthers;
    for (const listener of refused) listener.onRefused();
  }

  return {
    listen(listener) {
      const name = nameOf(listener.target);
      const watch = watches.get(name) ?? newWatch(listener.target);
      watches.set(name, watch);
      if (watch.isRefused) watch.failures = 0; // the TPP has read the status again
      watch.isSuspended = false;
      const unlink = watch.listeners.append(listener);
      void check(watch);
      return () => {
        if (!unlink() || watch.listeners.size() > 0) return;
        clearTimeout(watch.timer);
        if (watches.get(name) === watch) watches.delete(name);
      };
    },
  };
}

/** @returns whether a listener is affected */
function notify({ listeners }: Watch, isAffected: (listener: StatusListener) => boolean): boolean {
  const affected = listeners.toArray().filter(isAffected);
  for (const listener of affected) listener.onChange();
  return affected.length > 0;
}

/** The newest listener, because it has the newest credentials; one whose credentials were refused only if there is no other. */
function mostUrgent({ listeners, refused }: Watch): StatusListener | undefined {
  const all = listeners.toArray();
  const accepted = all.filter((listener) => !refused.has(listener));
  const candidates = accepted.length > 0 ? accepted : all;
  return candidates.findLast(({ urgency }) => urgency === 'listener') ?? candidates.at(-1);
}

const nameOf = ({ tenantId, paymentKey }: PaymentOfTenant) => `${paymentKey} ${tenantId}`;

/**
 * A poll does not know when an authorisation was started. That is a write, and each write restarts the time for which the payment has
 * its status, so this time is used instead.
 */
const polledStatus = (watch: Watch, finality: Finality, unchangedForMs: number): PolledStatus => ({
  finality,
  unchangedForMs,
  isInstant: watch.isInstant,
  authorisingForMs: unchangedForMs,
});

const newWatch = ({ tenantId, paymentKey, operation }: PollTarget): Watch => ({
  tenantId,
  paymentKey,
  isInstant: isInstantProduct(operation.paymentProduct),
  listeners: createLinkedList(),
  timer: undefined,
  isChecking: false,
  isOutdated: false,
  isPolling: false,
  notifications: 0,
  readNotifications: 0,
  polledAtMs: 0,
  failures: 0,
  retryAfterMs: 0,
  isRefused: false,
  isSuspended: false,
  refused: new WeakSet(),
  changedAtMs: 0,
});
