/**
 * Handles the notifications of banks. The gateway does not trust their content: a notification makes it read the status itself, at most
 * once per second and payment (bank-notification-gap.ts).
 */

import { setTimeout } from 'node:timers/promises';
import type { PaymentOfTenant } from '../request/statuses.ts';
import type { BankNotificationTable } from '../store/bank-notifications.ts';
import type { BankNotificationGap } from './bank-notification-gap.ts';

export interface BankNotificationReceiver {
  /**
   * Queues a notification. Returns at once.
   *
   * @param id of the token
   * @returns `false` if the queue is full, or the gateway stops: the notification is not queued
   */
  accept(id: string): boolean;
  /** Stores the payment of a token. Tries again while the database is unavailable. Never fails. */
  record(id: string, payment: PaymentOfTenant): void;
  /** Waits until the queued notifications are handled. */
  stop(): Promise<void>;
}

interface BankNotificationReceiverDependencies {
  readonly payments: Pick<BankNotificationTable, 'find' | 'record'>;
  /** How long a payment is stored. Milliseconds. */
  readonly keepForMs: () => number;
  readonly gap: BankNotificationGap;
  /** Tests lower these values. Times in milliseconds. */
  readonly pauseMs?: number;
  readonly retryMs?: number;
  /** The maximum number of tokens with queued notifications, about 300 bytes each. */
  readonly maxPending?: number;
}

/** The queued notifications of one token. */
interface PendingNotification {
  /** Whether another notification has arrived since the last one was handled. */
  isRepeated: boolean;
}

/** The maximum number of tokens that are handled at the same time. */
const maxRunning = 16;
/** The maximum number of payments that are being stored. Beyond it, the payment of a token is not stored, and polls find its changes. */
const maxUnrecorded = 1_000;

export function createBankNotificationReceiver({
  payments,
  keepForMs,
  gap,
  pauseMs = 100,
  retryMs = 1_000,
  maxPending = 10_000,
}: BankNotificationReceiverDependencies): BankNotificationReceiver {
  const pending = new Map<string, PendingNotification>();
  const waiting: (() => void)[] = [];
  const stopping = new AbortController();
  const work = new Set<Promise<void>>();
  let running = 0;
  let unrecorded = 0;

  const pause = (ms: number) => setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => {});

  function track(task: Promise<void>): void {
    const tracked = task.finally(() => work.delete(tracked));
    work.add(tracked);
  }

  /** Handles the first notification of a token at once, and those that arrive in the following pause together after it. */
  async function run(id: string, notification: PendingNotification): Promise<void> {
    do {
      notification.isRepeated = false;
      await withTurn(() => handle(id));
      await pause(pauseMs);
    } while (notification.isRepeated && !stopping.signal.aborted);
    pending.delete(id);
    if (notification.isRepeated) await handle(id);
  }

  async function withTurn(task: () => Promise<void>): Promise<void> {
    if (running >= maxRunning) await new Promise<void>((resolve) => void waiting.push(resolve));
    else running += 1;
    await task();
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }

  async function handle(id: string): Promise<void> {
    await untilAvailable(async () => {
      const payment = await payments.find(id);
      if (payment) await gap.request(payment);
    });
  }

  /** Repeats a task while the database or Redis is unavailable. */
  async function untilAvailable(task: () => Promise<void>): Promise<void> {
    for (;;) {
      const isDone = await task().then(
        () => true,
        () => false,
      );
      if (isDone || stopping.signal.aborted) return;
      await pause(retryMs);
    }
  }

  return {
    accept(id) {
      const known = pending.get(id);
      if (known) {
        known.isRepeated = true;
        return true;
      }
      if (pending.size >= maxPending || stopping.signal.aborted) return false;
      const notification = { isRepeated: false };
      pending.set(id, notification);
      track(run(id, notification));
      return true;
    },
    record(id, payment) {
      if (unrecorded >= maxUnrecorded) return;
      unrecorded += 1;
      const recorded = untilAvailable(async () => {
        if (await payments.record(id, payment, keepForMs())) await gap.request(payment);
      });
      track(recorded.finally(() => void unrecorded--));
    },
    async stop() {
      stopping.abort();
      await Promise.all(work);
      await gap.stop();
    },
  };
}
