/** Reads the statuses of subscribed payments when they are due, and makes a message of each change. */

import { randomUUID } from 'node:crypto';
import type { Finality } from '../pis/transaction-status.ts';
import type { DueChange, Schedules } from '../state/schedules.ts';
import { createQueueWorker, type LeasedRecord, type QueueWorker } from './queue-worker.ts';
import { parseSubscription, type Subscription, withStatus } from './subscription.ts';
import {
  queueNames,
  removedFromQueues,
  type SubscriptionChange,
  type SubscriptionStore,
} from './subscription-store.ts';

/** The result of reading a status for a subscription. */
export type StatusRead =
  | {
      readonly kind: 'status';
      readonly hash: string;
      readonly code: string | undefined;
      readonly finality: Finality;
    }
  /** The bank or the gateway does not accept the credentials for this payment. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed' };

export interface PollDependencies {
  readonly schedules: Schedules;
  readonly store: SubscriptionStore;
  /** The tenants and environments whose subscriptions are polled, by their identities. */
  readonly owners: () => readonly Pick<Subscription, 'tenant' | 'environment'>[];
  /** Whether the settings of this instance allow it. Those of another instance may be newer or older. */
  readonly isAllowed: (subscription: Subscription) => boolean;
  /** Waits until the environment may be asked. @returns `false` if the read is to be dropped */
  readonly takePermit: (subscription: Subscription, signal: AbortSignal) => Promise<boolean>;
  readonly read: (subscription: Subscription) => Promise<StatusRead>;
  /** From one read to the next; `undefined` if the status does not change any more. Milliseconds. */
  readonly intervalMs: (subscription: Subscription, nowMs: number) => number | undefined;
  /** Called when a message is stored, which is due. */
  readonly onMessage: () => void;
  readonly onBug: (thrown: unknown) => void;
}

/** Resolves when the signal aborts: the read continues, but nobody waits for it. */
const interruptionOf = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    const interrupt = () => resolve(undefined);
    if (signal.aborted) interrupt();
    else signal.addEventListener('abort', interrupt, { once: true });
  });

/** Reads of one instance at the same time, and of one tenant in one environment: more would wait for their permits. */
const maxRecords = 64;
const maxPerQueue = 8;
/** Until a read that was dropped is due again. Milliseconds. */
const droppedDelayMs = 2_000;
/** Until a record is due again that this instance cannot use: another one may be able to. Milliseconds. */
const otherInstanceMs = 60_000;

export function createSubscriptionPolls({
  schedules,
  store,
  owners,
  isAllowed,
  takePermit,
  read,
  intervalMs,
  onMessage,
  onBug,
}: PollDependencies): QueueWorker {
  async function poll(leased: LeasedRecord): Promise<void> {
    if (!leased.record) return moveTo(leased, undefined);
    const subscription = parseSubscription(leased.record.text);
    if (!subscription) return moveTo(leased, otherInstanceMs);
    const leftMs = subscription.until - Date.now();
    if (leftMs <= 0) return end(leased);
    if (!isAllowed(subscription)) return moveTo(leased, otherInstanceMs);
    if (subscription.suspended) return moveTo(leased, leftMs);
    if (subscription.status?.finality === 'final') return moveTo(leased, undefined);
    if (!(await takePermit(subscription, leased.signal))) return moveTo(leased, droppedDelayMs);
    const result = await Promise.race([read(subscription), interruptionOf(leased.signal)]);
    if (leased.isLost()) return;
    return result ? record(leased, result) : moveTo(leased, 0);
  }

  const moveTo = ({ queue, key, lease }: LeasedRecord, inMs: number | undefined) =>
    schedules.reschedule(key, { queue, inMs, lease: lease() });

  /** Ends a subscription, after its last message if there is one. */
  const end = (leased: LeasedRecord) =>
    store.change(
      leased.key,
      (current) => {
        const leavesQueue: DueChange = { queue: leased.queue, inMs: undefined, lease: leased.lease() };
        if (!current || current.message) return { subscription: current, due: [leavesQueue] };
        return { subscription: undefined, due: [leavesQueue, ...removedFromQueues(current, leased.queue)] };
      },
      leased.record,
    );

  async function record(leased: LeasedRecord, result: StatusRead): Promise<void> {
    const messageId = randomUUID();
    let stored: Subscription | undefined;
    await store.change(
      leased.key,
      (current) => {
        const change = current && changeAfter(leased, current, result, messageId);
        stored = change?.subscription;
        return (
          change ?? {
            subscription: undefined,
            due: [{ queue: leased.queue, inMs: undefined, lease: leased.lease() }],
          }
        );
      },
      leased.record,
    );
    if (stored?.message?.id === messageId) onMessage();
  }

  function changeAfter(
    { queue, lease }: LeasedRecord,
    current: Subscription,
    result: StatusRead,
    messageId: string,
  ): SubscriptionChange {
    const nowMs = Date.now();
    const { failedReads, ...rest } = current;
    switch (result.kind) {
      case 'refused':
        return {
          subscription: { ...rest, suspended: true },
          due: [{ queue, inMs: Math.max(0, current.until - nowMs), lease: lease() }],
        };
      case 'failed': {
        const failed = { ...rest, failedReads: (failedReads ?? 0) + 1 };
        return { subscription: failed, due: [{ queue, inMs: intervalMs(failed, nowMs), lease: lease() }] };
      }
      case 'status': {
        const subscription = withStatus(rest, result, { messageId, nowMs });
        const delivery: DueChange = { queue: queueNames.delivery(current.tenant), inMs: 0 };
        const hasMessage = subscription.message?.id === messageId;
        const isOver = subscription.status?.finality === 'final' && !subscription.message;
        if (isOver)
          return {
            subscription: undefined,
            due: [{ queue, inMs: undefined, lease: lease() }, ...removedFromQueues(current, queue)],
          };
        return {
          subscription,
          due: [
            { queue, inMs: intervalMs(subscription, nowMs), lease: lease() },
            ...(hasMessage ? [delivery, { queue: queueNames.dead(current.tenant), inMs: undefined }] : []),
          ],
        };
      }
    }
  }

  return createQueueWorker({
    schedules,
    queues: () => owners().map(queueNames.poll),
    maxRecords,
    maxPerQueue,
    handle: poll,
    onBug,
  });
}
