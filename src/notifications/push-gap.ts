/**
 * At most one read per second for the notifications of a payment, over all instances. One that arrives within the second causes another
 * read when it is over.
 *
 * The first instance writes a key, reads, and looks at the key a second later: if it was marked in the meantime, it reads again. Other
 * notifications only set that mark.
 */

import { setTimeout } from 'node:timers/promises';
import type { PaymentOfTenant } from '../request/statuses.ts';
import type { KeyValues } from '../state/ports.ts';

export interface PushGap {
  /** Starts a read, now or when the second is over. @throws GatewayError STATE_UNAVAILABLE */
  request(payment: PaymentOfTenant): Promise<void>;
  /** Ends the seconds that are running: reads that are due are started at once. */
  stop(): Promise<void>;
}

interface PushGapDependencies {
  readonly keyValues: Pick<KeyValues, 'writeIfAbsent' | 'replace' | 'read' | 'removeIf'>;
  /** Starts a read on behalf of those that listen. @throws GatewayError STATE_UNAVAILABLE */
  readonly startRead: (payment: PaymentOfTenant) => Promise<void>;
  /** By default a second. Milliseconds. */
  readonly gapMs?: number;
}

/** The mark of an instance that is killed ends after this time. Longer than the gap and an outage of Redis. Milliseconds. */
const markMs = 10_000;
/** Each failed attempt means that a second has ended in between. */
const maxAttempts = 5;

const keyOf = ({ paymentKey, tenantId }: PaymentOfTenant) => `${paymentKey}:push:${tenantId}`;

export function createPushGap({ keyValues, startRead, gapMs = 1_000 }: PushGapDependencies): PushGap {
  const stopping = new AbortController();
  const seconds = new Set<Promise<void>>();

  /** Reads once per second, as long as another read is due. */
  async function runSeconds(payment: PaymentOfTenant): Promise<void> {
    for (let isLast = false, isDue = true; isDue; ) {
      const isStarted = await startRead(payment).then(
        () => true,
        () => false, // it is due until the shared state is available
      );
      if (isLast) return;
      await setTimeout(gapMs, undefined, { signal: stopping.signal }).catch(() => {});
      isLast = stopping.signal.aborted;
      const isMarked = await endSecond(keyOf(payment)).catch(() => true);
      isDue = isMarked || !isStarted;
    }
  }

  /** @returns whether another read is due, and the next second has begun */
  async function endSecond(key: string): Promise<boolean> {
    if (await keyValues.removeIf(key, 'read')) return false;
    return keyValues.replace(key, 'marked', 'read', markMs);
  }

  return {
    async request(payment) {
      const key = keyOf(payment);
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        if (await keyValues.writeIfAbsent(key, 'read', markMs)) {
          const second = runSeconds(payment).finally(() => seconds.delete(second));
          seconds.add(second);
          return;
        }
        if (await keyValues.replace(key, 'read', 'marked', markMs)) return;
        if ((await keyValues.read(key)) === 'marked') return;
      }
    },
    async stop() {
      stopping.abort();
      await Promise.all(seconds);
    },
  };
}
