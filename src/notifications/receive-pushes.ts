/**
 * What the gateway does with the notifications of a bank: it does not trust them, and reads the status itself. The result reaches
 * all that listen, as the result of any other read does.
 */

import { setTimeout } from 'node:timers/promises';
import type { PaymentOfTenant } from '../request/statuses.ts';
import type { PushGap } from './push-gap.ts';
import type { PushedPayments } from './pushed-payments.ts';

export interface PushReceiver {
  /**
   * Takes a notification. Returns at once.
   *
   * @param id of the token
   * @returns `false` if too many wait: it is not taken
   */
  accept(id: string): boolean;
  /** Records the payment of a token, again after an outage of the shared state. Never fails. */
  record(id: string, payment: PaymentOfTenant): void;
  /** Finishes what was taken. */
  stop(): Promise<void>;
}

interface PushReceiverDependencies {
  readonly payments: PushedPayments;
  readonly gap: PushGap;
  /** Tests lower these values. Times in milliseconds. */
  readonly pauseMs?: number;
  readonly retryMs?: number;
  /** Tokens with notifications that wait, about 300 bytes each. */
  readonly maxPending?: number;
}

/** Work on one token. */
interface PendingPush {
  /** Whether another notification has arrived since the work began. */
  isRepeated: boolean;
}

/** How many tokens are worked on at the same time. */
const maxRunning = 16;
/** Payments that could not be recorded yet. */
const maxUnrecorded = 1_000;

export function createPushReceiver({
  payments,
  gap,
  pauseMs = 100,
  retryMs = 1_000,
  maxPending = 10_000,
}: PushReceiverDependencies): PushReceiver {
  const pending = new Map<string, PendingPush>();
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

  /** Of many notifications with one token, the first one and, after a pause, the last ones cause commands to the shared state. */
  async function run(id: string, push: PendingPush): Promise<void> {
    do {
      push.isRepeated = false;
      await withTurn(() => handle(id));
      await pause(pauseMs);
    } while (push.isRepeated && !stopping.signal.aborted);
    pending.delete(id);
    if (push.isRepeated) await handle(id);
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

  /** Repeats a task while the shared state is unavailable. */
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
      const push = { isRepeated: false };
      pending.set(id, push);
      track(run(id, push));
      return true;
    },
    record(id, payment) {
      if (unrecorded >= maxUnrecorded) return;
      unrecorded += 1;
      const recorded = untilAvailable(async () => {
        if (await payments.record(id, payment)) await gap.request(payment);
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
