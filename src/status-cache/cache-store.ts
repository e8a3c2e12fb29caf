/**
 * The cached payments in the shared state. Each change is one compare-and-set on the payment. An invalidation that fails is
 * retried: until it succeeds, this instance serves no cached status of the payment.
 */

import { GatewayError } from '../request/errors.ts';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import { createParseCache } from '../state/parse-cache.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import type { KeyValues } from '../state/ports.ts';
import {
  type CachedPayment,
  invalidatedPayment,
  parseCachedPayment,
  serializeCachedPayment,
  withoutCredential,
} from './cached-payment.ts';
import {
  type Observation,
  type RecordOutcome,
  recordObservation,
  recordRead,
  type StatusRead,
} from './observation-rules.ts';

/** A payment, and its text in the shared state. */
export interface StoredPayment extends CachedPayment {
  readonly text: string | undefined;
}

/** Each operation throws GatewayError STATE_UNAVAILABLE if the state cannot be reached or rejects the change. */
export interface CacheStore {
  read(paymentKey: string): Promise<StoredPayment>;
  /** @param before the payment when the fetch began; it is read again only if necessary */
  recordRead(paymentKey: string, before: StoredPayment, read: StatusRead): Promise<RecordOutcome>;
  recordObservation(paymentKey: string, observation: Observation): Promise<void>;
  deleteCredential(paymentKey: string, credential: string): Promise<void>;
}

/** Longer than any call can take: a read that began before an invalidation must find it afterwards. Milliseconds. */
const maxCallMs = 15 * 60_000;
/** Each failed attempt means that another instance changed the payment first. */
const maxAttempts = 20;

/**
 * @param storedForMs  how long a payment is stored after its last change; longer than any of its responses is useful
 * @param flushPending writes a pending invalidation before a payment is read or a status read is recorded
 */
export function createCacheStore(
  keyValues: KeyValues,
  storedForMs: number,
  flushPending: (paymentKey: string) => Promise<void>,
): CacheStore {
  const ttlMs = Math.max(storedForMs, maxCallMs);
  const parse = createParseCache((text): StoredPayment => ({ ...parseCachedPayment(text), text }));

  async function readStored(paymentKey: string): Promise<StoredPayment> {
    const text = await keyValues.read(paymentKey);
    return text === undefined ? { ...parseCachedPayment(text), text } : parse(text);
  }

  /**
   * @param first  the payment when it was last read
   * @param change returns the outcome and the changed payment; without one, the payment stays as it is
   */
  async function update<Outcome>(
    paymentKey: string,
    first: StoredPayment,
    change: (payment: StoredPayment) => readonly [Outcome, (CachedPayment | undefined)?],
  ): Promise<Outcome> {
    let payment = first;
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const [outcome, changed] = change(payment);
      if (!changed) return outcome;
      if (await compareAndSet(paymentKey, payment.text, serializeCachedPayment(changed))) return outcome;
      payment = await readStored(paymentKey);
    }
    throw new GatewayError(
      'STATE_UNAVAILABLE',
      `The cached payment was not updated: other instances changed it ${maxAttempts} times.`,
    );
  }

  const compareAndSet = (paymentKey: string, before: string | undefined, after: string) =>
    before === undefined
      ? keyValues.writeIfAbsent(paymentKey, after, ttlMs)
      : keyValues.replace(paymentKey, before, after, ttlMs);

  return {
    async read(paymentKey) {
      await flushPending(paymentKey);
      return readStored(paymentKey);
    },
    async recordRead(paymentKey, before, read) {
      await flushPending(paymentKey); // an observation that was not recorded while the state was unavailable
      const storesNothing = Object.keys(read.responses).length === 0;
      const first = storesNothing ? await readStored(paymentKey) : before; // no write may follow that compares `before`
      return update(paymentKey, first, (payment) => recordRead(payment, before.generation, read));
    },
    async recordObservation(paymentKey, observation) {
      const first = await readStored(paymentKey);
      await update(paymentKey, first, (payment) => [undefined, recordObservation(payment, observation)]);
    },
    async deleteCredential(paymentKey, credential) {
      const first = await readStored(paymentKey);
      await update(paymentKey, first, (payment) => [undefined, withoutCredential(payment, credential)]);
    },
  };
}

/** Invalidates cached payments in all instances: at once, or as soon as the shared state accepts it. */
export interface Invalidation {
  /** @throws GatewayError STATE_UNAVAILABLE if it fails; it is not retried then */
  invalidate(paymentKey: string): Promise<void>;
  /** Queues the invalidation. */
  defer(paymentKey: string): void;
  /** Invalidates now, or queues the invalidation if that fails. Never fails. */
  invalidateOrDefer(paymentKey: string): Promise<void>;
  /** Writes the pending invalidation of this payment, if there is one. @throws GatewayError STATE_UNAVAILABLE */
  flushPayment(paymentKey: string): Promise<void>;
  /** Writes all pending invalidations, up to the first that fails. @throws GatewayError STATE_UNAVAILABLE */
  flush(): Promise<void>;
}

export interface InvalidationTargets {
  readonly invalidatePayment: (paymentKey: string) => Promise<void>;
  readonly invalidateAll: () => Promise<void>;
}

/** Beyond this number, all payments are invalidated; 100 bytes each. */
const maxPending = 10_000;
const allPayments = '*';

export function createInvalidation({ invalidatePayment, invalidateAll }: InvalidationTargets): Invalidation {
  const pending = createPendingWrites<null>((_, key) =>
    key === allPayments ? invalidateAll() : invalidatePayment(key),
  );
  const defer = (paymentKey: string) =>
    pending.add(pending.size() < maxPending ? paymentKey : allPayments, null);

  return {
    invalidate: invalidatePayment,
    defer,
    invalidateOrDefer: (paymentKey) => invalidatePayment(paymentKey).catch(() => defer(paymentKey)),
    async flushPayment(paymentKey) {
      await pending.flushKey(allPayments);
      await pending.flushKey(paymentKey);
    },
    async flush() {
      await pending.flushKey(allPayments);
      await pending.flush();
    },
  };
}

/** Replaces the stored payment by a new generation: what was read before can no longer be stored. */
export const createInvalidatePayment =
  (keyValues: KeyValues, changes: ChangeWaiter): InvalidationTargets['invalidatePayment'] =>
  async (paymentKey) => {
    await keyValues.write(paymentKey, serializeCachedPayment(invalidatedPayment()), maxCallMs);
    changes.notify(paymentKey);
  };
