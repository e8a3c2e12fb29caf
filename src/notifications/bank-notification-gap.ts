/**
 * Limits the reads for the notifications of a payment to one per second, over all instances. If notifications arrive within the second,
 * one more read follows at its end.
 *
 * The first instance writes a key, reads, and looks at the key a second later: if it was marked in the meantime, it reads again. Other
 * notifications only set that mark. If the mark is still there two seconds later, the first instance was killed, and the one that set
 * the mark takes over.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { stateUnavailable } from '../request/errors.ts';
import type { PaymentOfTenant } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';

export interface BankNotificationGap {
  /** Starts a read now, or at the end of the second. @throws GatewayError STATE_UNAVAILABLE */
  request(payment: PaymentOfTenant): Promise<void>;
  /** Does not wait for the end of the second: starts the reads that are due at once. */
  stop(): Promise<void>;
}

interface BankNotificationGapDependencies {
  readonly keyValues: Pick<KeyValues, 'writeIfAbsent' | 'replace' | 'read' | 'removeIf'>;
  /** Starts a read for the listeners and the subscription of a payment. @throws GatewayError STATE_UNAVAILABLE */
  readonly startRead: (payment: PaymentOfTenant) => Promise<void>;
  /** The minimum time between two reads, by default a second. Milliseconds. */
  readonly gapMs?: number;
}

/** The key of an instance that is killed ends after this time. Longer than the gap and an outage of Redis. Milliseconds. */
const keptMs = 10_000;
/** The value of the key, until another notification arrives. */
const read = 'read';
/** Each failed attempt means that a second has ended in between. */
const maxAttempts = 5;

const keyOf = ({ paymentKey, tenantId }: PaymentOfTenant) => `${paymentKey}:push:${tenantId}`;

export function createBankNotificationGap({
  keyValues,
  startRead,
  gapMs = 1_000,
}: BankNotificationGapDependencies): BankNotificationGap {
  const stopping = new AbortController();
  const seconds = new Set<Promise<void>>();

  /** Reads once per second, as long as another read is due. */
  async function runSeconds(payment: PaymentOfTenant): Promise<void> {
    for (let isLast = false, isDue = true; isDue; ) {
      const isStarted = await startRead(payment).then(
        () => true,
        () => false, // the read stays due until the shared state is available
      );
      if (isLast) return;
      await setTimeout(gapMs, undefined, { signal: stopping.signal }).catch(() => {});
      isLast = stopping.signal.aborted;
      const isMarked = await endSecond(keyOf(payment), isLast).catch(() => true);
      isDue = isMarked || !isStarted;
    }
  }

  /**
   * @param isLast whether this instance stops: it leaves no key, because nobody would look at a mark
   * @returns whether another read is due; unless it is the last one, the next second has begun
   */
  async function endSecond(key: string, isLast: boolean): Promise<boolean> {
    if (await keyValues.removeIf(key, read)) return false;
    const mark = await keyValues.read(key);
    if (mark === undefined || mark === read) return false;
    return isLast ? keyValues.removeIf(key, mark) : keyValues.replace(key, mark, read, keptMs);
  }

  /** Reads if the mark is still there after a time in which the instance that began the second has looked at it. */
  async function takeOver(payment: PaymentOfTenant, mark: string): Promise<void> {
    await setTimeout(2 * gapMs, undefined, { signal: stopping.signal }).catch(() => {});
    if (stopping.signal.aborted) return;
    const isTaken = await keyValues.replace(keyOf(payment), mark, read, keptMs).catch(() => false);
    if (isTaken) await runSeconds(payment);
  }

  function track(work: Promise<void>): void {
    const tracked = work.finally(() => seconds.delete(tracked));
    seconds.add(tracked);
  }

  return {
    async request(payment) {
      const key = keyOf(payment);
      const mark = `marked ${randomUUID()}`;
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        if (await keyValues.writeIfAbsent(key, read, keptMs)) return track(runSeconds(payment));
        if (await keyValues.replace(key, read, mark, keptMs)) return track(takeOver(payment, mark));
        const stored = await keyValues.read(key);
        if (stored !== undefined && stored !== read) return; // marked by another notification
      }
      throw stateUnavailable(new Error(`the seconds of a payment ended ${maxAttempts} times`));
    },
    async stop() {
      stopping.abort();
      await Promise.all(seconds);
    },
  };
}
