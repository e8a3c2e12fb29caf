/** The kept answers in the shared state: read, noted, dropped, each change by one compare-and-set on the payment's document. */

import { GatewayError } from '../request/errors.ts';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import { createParseCache } from '../state/parse-cache.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import type { KeyValues } from '../state/ports.ts';
import {
  type CachedPayment,
  invalidatedPayment,
  type Observation,
  parseCachedPayment,
  serializeCachedPayment,
  withObservation,
  withoutCredential,
} from './cached-payment.ts';

/** What became of a sighting that was to be noted. */
export type RecordOutcome =
  /** Nothing newer is known: what was seen may be served. */
  | 'current'
  /** The payment was forgotten, or another status was seen, since the bank was asked: it may be too old to be served. */
  | 'outdated';

/** A document, and the text that stands in the shared state for it. */
export interface StoredPayment extends CachedPayment {
  readonly text: string | undefined;
}

/** Every operation throws GatewayError STATE_UNAVAILABLE if the state cannot be reached, or takes no change. */
export interface CacheStore {
  read(key: string): Promise<StoredPayment>;
  /** @param asked what was kept when the bank was asked; as a rule it still is, and need not be read again */
  record(key: string, asked: StoredPayment, sighting: Observation): Promise<RecordOutcome>;
  dropCredential(key: string, credential: string): Promise<void>;
}

/** How often a change is tried: each time in vain, somebody else was faster, and of a crowd each keeps all others trying. */
const maxAttempts = 20;

/**
 * @param keptForMs   how long a document lives after it was last written: longer than any entry in it is of use
 * @param forgetFirst done before a document is read: what is owed to it
 */
export function createCacheStore(
  keyValues: KeyValues,
  keptForMs: number,
  forgetFirst: (key: string) => Promise<void>,
): CacheStore {
  const lifeMs = Math.max(keptForMs, maxCallMs);

  const documentIn = createParseCache((text): StoredPayment => ({ ...parseCachedPayment(text), text }));
  const kept = async (key: string): Promise<StoredPayment> => {
    const text = await keyValues.read(key);
    return text === undefined ? { ...parseCachedPayment(text), text } : documentIn(text);
  };

  /**
   * @param first  what the document was when it was last seen
   * @param change what becomes of a document, and what that means; without a document, it stays as it is
   */
  async function changed<Outcome>(
    key: string,
    first: StoredPayment,
    change: (document: StoredPayment) => readonly [Outcome, CachedPayment?],
  ): Promise<Outcome> {
    let document = first;
    for (let tries = 0; tries < maxAttempts; tries++) {
      const [outcome, next] = change(document);
      if (!next) return outcome;
      if (await put(key, document.text, serializeCachedPayment(next))) return outcome;
      document = await kept(key);
    }
    throw new GatewayError('STATE_UNAVAILABLE', 'What is kept of a payment could not be changed.');
  }

  const put = (key: string, raw: string | undefined, next: string) =>
    raw === undefined
      ? keyValues.writeIfAbsent(key, next, lifeMs)
      : keyValues.replace(key, raw, next, lifeMs);

  return {
    async record(key, asked, sighting) {
      const isForItselfAlone = Object.keys(sighting.entries).length === 0;
      const first = isForItselfAlone ? await kept(key) : asked; // else nothing might be written, and so nothing compared
      return changed<RecordOutcome>(key, first, (document) => {
        const isKnown = document.standing === sighting.standing;
        if (document.generation !== asked.generation) return [isKnown ? 'current' : 'outdated'];
        return isKnown && isForItselfAlone ? ['current'] : ['current', withObservation(document, sighting)];
      });
    },
    async dropCredential(key, credential) {
      await changed(key, await kept(key), (document) => [undefined, withoutCredential(document, credential)]);
    },
    async read(key) {
      await forgetFirst(key);
      return kept(key);
    },
  };
}

// MERGED HEADER (rewrite or remove):
/*
 * Makes every instance forget what is kept of a payment: now, or as soon as the shared state takes it. Until then it is
 * owed, and this instance serves nothing that is kept of the payment.
 */

/** Payments are named by the key of their document. */
export interface Invalidation {
  /** @throws GatewayError STATE_UNAVAILABLE if that cannot be done; it is not owed then */
  invalidate(key: string): Promise<void>;
  /** Owes it. */
  later(key: string): void;
  /** Does it now, or owes it if that fails. Never fails. */
  invalidateOrDefer(key: string): Promise<void>;
  /** Forgets this payment now, if that is owed. @throws GatewayError STATE_UNAVAILABLE if it cannot be done yet */
  flushPayment(key: string): Promise<void>;
  /** Forgets all that is owed, up to the first that fails. @throws GatewayError STATE_UNAVAILABLE if one does */
  flush(): Promise<void>;
}

interface InvalidationTargets {
  /** Makes the instances forget one payment. */
  readonly invalidatePayment: (key: string) => Promise<void>;
  /** Makes them forget every one. */
  readonly invalidateAll: () => Promise<void>;
}

/** Longer than any call can take: a read that began before a payment was forgotten must find that it was. Milliseconds. */
const maxCallMs = 15 * 60_000;
/** With more than these, everything is owed: about 100 bytes each. */
const maxPending = 10_000;
const allPayments = '*';

/** Puts another generation in place of what is kept: what was read before can be kept no more. */
export function createInvalidatePayment(
  keyValues: KeyValues,
  changes: ChangeWaiter,
): InvalidationTargets['invalidatePayment'] {
  return async (key) => {
    await keyValues.write(key, serializeCachedPayment(invalidatedPayment()), maxCallMs);
    changes.notify(key);
  };
}

/** Nothing is owed yet. */
export function createInvalidation({ invalidatePayment, invalidateAll }: InvalidationTargets): Invalidation {
  const pending = createPendingWrites<null>((_, key) =>
    key === allPayments ? invalidateAll() : invalidatePayment(key),
  );
  const later = (key: string) => pending.add(pending.size() < maxPending ? key : allPayments, null);

  return {
    invalidate: invalidatePayment,
    later,
    invalidateOrDefer: (key) => invalidatePayment(key).catch(() => later(key)),
    async flushPayment(key) {
      await pending.flushKey(allPayments);
      await pending.flushKey(key);
    },
    async flush() {
      await pending.flushKey(allPayments);
      await pending.flush();
    },
  };
}
