/** Reads the statuses of subscribed payments and their authorisations when they are due, and creates messages about changes. */

import { randomUUID } from 'node:crypto';
import type { SubscriptionTable, WorkQueue } from '../store/subscriptions.ts';
import type { AuthorisationRead } from './authorisations.ts';
import { paymentContentOf } from './notification-content.ts';
import { createQueueWorker, type LeasedWork, type QueueWorker } from './queue-worker.ts';
import type { StatusReadResult, SubscriptionReader } from './read-subscription.ts';
import {
  isFailing,
  isOver,
  runningAuthorisations,
  type Subscription,
  settledForMs,
  withReads,
} from './subscription.ts';
import {
  type KnownSubscription,
  otherInstanceDelayMs,
  type SubscriptionChange,
  type SubscriptionStore,
} from './subscription-store.ts';

export interface PollDependencies {
  readonly table: Pick<SubscriptionTable, 'take' | 'extend' | 'reschedule'>;
  readonly store: SubscriptionStore;
  /** The tenants and environments whose subscriptions are read, by their identities. */
  readonly queues: () => readonly Required<WorkQueue>[];
  /** Whether the settings of this instance allow the subscription. Another instance may have newer or older settings. */
  readonly isAllowed: (subscription: Subscription) => boolean;
  readonly reader: SubscriptionReader;
  /** The time from one read to the next; `undefined` if nothing is to be read. Milliseconds. */
  readonly intervalMs: (subscription: Subscription, nowMs: number) => number | undefined;
  /** `notifications.maxInterval`, which limits how long the bank can ask to wait. Milliseconds. */
  readonly maxIntervalMs: () => number;
  /** Called when a message of a tenant is stored; it is due at once. */
  readonly onMessage: (tenantId: string) => void;
  /** Called when a subscription becomes one that fails, and when it recovers (`isFailing`). */
  readonly onFailing: (subscription: Subscription) => void;
  readonly onBug: (thrown: unknown) => void;
}

/** The results of the reads for a subscription that was due. */
interface Turn {
  /** `undefined` if the status was not to be read. */
  readonly status: StatusReadResult | undefined;
  /** The reads that have shown a change. */
  readonly authorisations: readonly AuthorisationRead[];
}

/** How long a settled status must not have changed to be the last one: see `withReads`. Milliseconds. */
function lastAfterMs(status: StatusReadResult | undefined, { failedReads = 0 }: Subscription): number {
  if (status?.kind === 'refused' && isFailing({ failedReads: failedReads + 1 })) return 0; // it probably cannot be read any more
  const isConfirmed = status?.kind === 'status' || status?.kind === 'known';
  return isConfirmed ? settledForMs : Number.POSITIVE_INFINITY;
}

/** Resolves when the signal aborts, so that the turn ends without waiting for a read in progress. */
const interruptionOf = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    const interrupt = () => resolve(undefined);
    if (signal.aborted) interrupt();
    else signal.addEventListener('abort', interrupt, { once: true });
  });

/** Subscriptions that one instance reads at the same time in one environment, and those of one tenant: more would wait for permits. */
const maxAtOnce = 128;
const maxPerQueue = 32;
/** Until a read that was dropped is due again. Milliseconds. */
const droppedDelayMs = 2_000;

export function createSubscriptionPolls({
  table,
  store,
  queues,
  isAllowed,
  reader: { readStatus, readAuthorisation },
  intervalMs,
  maxIntervalMs,
  onMessage,
  onFailing,
  onBug,
}: PollDependencies): QueueWorker {
  async function poll(leased: LeasedWork): Promise<void> {
    const known = store.known(leased.taken);
    const { subscription } = known;
    const otherInstanceMs = otherInstanceDelayMs(known, Date.now());
    if (!subscription) return leased.leave(otherInstanceMs);
    const leftMs = subscription.until - Date.now();
    if (leftMs <= 0 || isOver(subscription)) return end(leased, known);
    if (!isAllowed(subscription)) return leased.leave(otherInstanceMs);
    const turn = await Promise.race([readAll(subscription, leased.signal), interruptionOf(leased.signal)]);
    if (leased.isLost()) return;
    if (!turn) return leased.leave(0);
    const { status, authorisations } = turn;
    const unread = { messageId: '', nowMs: Date.now(), lastAfterMs: lastAfterMs(status, subscription) };
    const isUnchanged = authorisations.length === 0 && withReads(subscription, {}, unread) === subscription;
    if (isUnchanged && status?.kind === 'dropped') return leased.leave(droppedDelayMs);
    if (isUnchanged && status?.kind === 'known') return leased.leave(status.dueInMs);
    return record(leased, known, turn);
  }

  /**
   * Reads the authorisations that have not ended, then the status, so that the status in a message is not older than the authorisation.
   * If the TPP has asked for `SCA` alone, the status is read only when an authorisation has changed.
   */
  async function readAll(subscription: Subscription, signal: AbortSignal): Promise<Turn> {
    const authorisations: AuthorisationRead[] = [];
    let isRefused = false;
    let failure: StatusReadResult | undefined;
    for (const authorisation of runningAuthorisations(subscription)) {
      const result = await readAuthorisation(subscription, authorisation, signal);
      const { type, id, scaStatus } = authorisation;
      isRefused ||= result.kind === 'refused';
      if (result.kind === 'dropped' || result.kind === 'failed') failure = result;
      if (result.kind === 'dropped') break;
      if (result.kind === 'failed' || result.kind === 'refused') continue;
      if (result.kind !== 'status' || result.scaStatus !== scaStatus)
        authorisations.push({ type, ...(id !== undefined && { id }), result });
    }
    const isStatusWanted =
      paymentContentOf(subscription.content) !== undefined || authorisations.length > 0 || isRefused;
    const status = isStatusWanted ? await readStatus(subscription, signal) : failure;
    return { status, authorisations };
  }

  /** Ends a subscription. If a message is undelivered, or the last one is still to be sent, it ends after the delivery. */
  const end = ({ taken: { id, lease } }: LeasedWork, known: KnownSubscription) =>
    store.change(
      id,
      (current) => {
        const isContinued = current && current.until > Date.now() && !isOver(current);
        if (isContinued) return { subscription: current, read: { inMs: 0, lease } }; // the TPP has subscribed again
        const read = { inMs: undefined, lease };
        if (!current || current.message) return { subscription: current, read };
        const last = withReads(current, {}, { messageId: randomUUID(), nowMs: Date.now(), lastAfterMs: 0 });
        const { message } = last;
        if (message)
          return {
            subscription: last,
            read,
            delivery: { inMs: 0 },
            message: { to: last, message, state: 'undelivered' },
          };
        return { subscription: undefined };
      },
      known,
    );

  async function record(leased: LeasedWork, known: KnownSubscription, turn: Turn): Promise<void> {
    const messageId = randomUUID();
    let stored: Subscription | undefined;
    let wasFailing = false;
    await store.change(
      leased.taken.id,
      (current) => {
        const change = current && changeAfter(leased, current, turn, messageId);
        stored = change?.subscription;
        wasFailing = current !== undefined && isFailing(current);
        return change;
      },
      known,
    );
    if (stored?.message?.id === messageId) onMessage(stored.tenant);
    if (stored && isFailing(stored) !== wasFailing) onFailing(stored);
  }

  function changeAfter(
    { taken: { lease } }: LeasedWork,
    current: Subscription,
    { status, authorisations }: Turn,
    messageId: string,
  ): SubscriptionChange {
    const nowMs = Date.now();
    const leftMs = Math.max(0, current.until - nowMs);
    const { failedReads = 0, readError, ...rest } = current;
    const isFailed = status?.kind === 'refused' || status?.kind === 'failed';
    const isUnread = status?.kind === 'dropped' || status?.kind === 'known';
    const read = withReads(
      rest,
      { status: status?.kind === 'status' ? status : undefined, authorisations },
      { messageId, nowMs, lastAfterMs: lastAfterMs(status, current) },
    );
    const subscription = {
      ...read,
      ...(isFailed && { failedReads: failedReads + 1, readError: status.why }),
      ...(isUnread && failedReads > 0 && { failedReads, readError }),
    };
    if (isOver(subscription) && !subscription.message) return { subscription: undefined };
    const created = subscription.message?.id === messageId ? subscription.message : undefined;
    return {
      subscription,
      read: { inMs: nextReadMs(subscription, status, nowMs, leftMs), lease },
      delivery: created && { inMs: 0 },
      message: created && { to: subscription, message: created, state: 'undelivered' },
    };
  }

  /** @param leftMs until the subscription ends @returns `undefined` if nothing is read any more. Milliseconds */
  function nextReadMs(
    subscription: Subscription,
    status: StatusReadResult | undefined,
    nowMs: number,
    leftMs: number,
  ): number | undefined {
    if (isOver(subscription)) return undefined;
    const intervalOrEndMs = Math.min(intervalMs(subscription, nowMs) ?? leftMs, leftMs);
    if (status?.kind === 'dropped') return Math.min(droppedDelayMs, intervalOrEndMs);
    if (status?.kind === 'known') return Math.min(status.dueInMs, intervalOrEndMs);
    if (status?.kind !== 'failed') return intervalOrEndMs;
    return Math.max(intervalOrEndMs, Math.min(status.retryAfterMs ?? 0, maxIntervalMs()));
  }

  /** One worker for each environment, so that a slow environment does not delay the others. */
  const workers = new Map<string, QueueWorker>();

  function workerOf(environment: string): QueueWorker {
    const known = workers.get(environment);
    if (known) return known;
    const worker = createQueueWorker({
      work: 'read',
      table,
      queues: () => queues().filter((queue) => queue.environment === environment),
      maxAtOnce,
      maxPerQueue,
      handle: poll,
      onBug,
    });
    workers.set(environment, worker);
    return worker;
  }

  return {
    async run(queue) {
      if (queue?.environment !== undefined) return workerOf(queue.environment).run(queue);
      const environments = new Set(queues().map(({ environment }) => environment));
      await Promise.all([...environments].map((environment) => workerOf(environment).run()));
    },
    async stop() {
      await Promise.all([...workers.values()].map((worker) => worker.stop()));
    },
  };
}
