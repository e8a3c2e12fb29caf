/**
 * The cached payments in the shared state. Each change is one compare-and-set on the payment. An invalidation that fails is
 * retried: until it succeeds, this instance serves no cached status of the payment.
 */

import { GatewayError } from '../request/errors.ts';
import type { ChangeWaiter } from '../state/change-waiter.ts';
import { createParseCache } from '../state/parse-cache.ts';
import type { KeyValues } from '../state/ports.ts';
import {
  type CachedPayment,
  expiredPayment,
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
  /** Whether or not an invalidation is pending. */
  readUnflushed(paymentKey: string): Promise<StoredPayment>;
  /** Writes a pending invalidation of the payment first. `undefined` if the state cannot be reached. */
  tryRead(paymentKey: string): Promise<StoredPayment | undefined>;
  /** @param before the payment when the fetch began; it is read again only if necessary */
  recordRead(paymentKey: string, before: StoredPayment, read: StatusRead): Promise<RecordOutcome>;
  /**
   * @param before the payment, read after the request to the bank was sent; `undefined` to read it now
   * @returns whether the status may be another one than the recorded one
   */
  recordObservation(
    paymentKey: string,
    observation: Observation,
    before?: Promise<StoredPayment>,
  ): Promise<boolean>;
  deleteCredential(paymentKey: string, credential: string): Promise<void>;
  /** From now on, no stored response is fresh, and no read that has begun is stored. The status remains known. */
  expire(paymentKey: string): Promise<void>;
}

/** Longer than any call can take: a read that began before an invalidation must find it afterwards. Milliseconds. */
const maxCallMs = 15 * 60_000;
/** Each failed attempt means that another instance changed the payment first. */
const maxAttempts = 20;

const nothingStored: StoredPayment = { ...parseCachedPayment(undefined), text: undefined };

/**
 * @param storedForMs  how long a payment is stored after its last change; longer than any of its responses is useful
 * @param invalidation a pending one is written before a payment is read or a status read is recorded
 */
export function createCacheStore(
  keyValues: KeyValues,
  storedForMs: number,
  { isPending, flushPayment }: Pick<Invalidation, 'isPending' | 'flushPayment'>,
): CacheStore {
  const ttlMs = Math.max(storedForMs, maxCallMs);
  const parse = createParseCache((text): StoredPayment => ({ ...parseCachedPayment(text), text }));
  const parseStored = (paymentKey: string, text: string | undefined) =>
    text === undefined ? nothingStored : parse(paymentKey, text);

  const readStored = (paymentKey: string): Promise<StoredPayment> =>
    keyValues.read(paymentKey).then((text) => parseStored(paymentKey, text));

  function read(paymentKey: string): Promise<StoredPayment> {
    if (!isPending(paymentKey)) return readStored(paymentKey);
    return flushPayment(paymentKey).then(() => readStored(paymentKey));
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
    readUnflushed: readStored,
    tryRead: (paymentKey) => read(paymentKey).catch(() => undefined),
    async recordRead(paymentKey, before, read) {
      await flushPayment(paymentKey); // an observation that was not recorded while the state was unavailable
      const storesNothing = Object.keys(read.responses).length === 0;
      // Without a response to store, perhaps nothing is written, and no compare-and-set shows that `before` is outdated.
      const first = storesNothing ? await readStored(paymentKey) : before;
      return update(paymentKey, first, (payment) => recordRead(payment, before.generation, read));
    },
    async recordObservation(paymentKey, observation, before = readStored(paymentKey)) {
      return update(paymentKey, await before, (payment) => {
        const changed = recordObservation(payment, observation);
        const wasKnown = payment.statusHash !== undefined || observation.what !== 'status';
        return [changed !== undefined && wasKnown, changed];
      });
    },
    async deleteCredential(paymentKey, credential) {
      const first = await readStored(paymentKey);
      await update(paymentKey, first, (payment) => [undefined, withoutCredential(payment, credential)]);
    },
    async expire(paymentKey) {
      const first = await readStored(paymentKey);
      await update(paymentKey, first, (payment) => [undefined, expiredPayment(payment)]);
    },
  };
}

/** Invalidates cached payments in all instances: at once, or as soon as the shared state accepts it. */
export interface Invalidation {
  /** @throws GatewayError STATE_UNAVAILABLE if it fails; it is not retried then */
  invalidate(paymentKey: string): Promise<void>;
  /** Whether an invalidation of this payment is queued: its stored statuses must not be served. */
  isPending(paymentKey: string): boolean;
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
  /** The payments whose invalidation is pending. The value differs at each call of `defer`. */
  const pending = new Map<string, symbol>();
  const defer = (paymentKey: string) =>
    void pending.set(pending.size < maxPending ? paymentKey : allPayments, Symbol());

  async function flushKey(key: string): Promise<void> {
    const deferred = pending.get(key);
    if (deferred === undefined) return;
    pending.delete(key);
    pending.set(key, deferred); // at the end, so that an invalidation that keeps failing does not block the others
    await (key === allPayments ? invalidateAll() : invalidatePayment(key));
    if (pending.get(key) === deferred) pending.delete(key); // otherwise it was deferred again
  }

  return {
    invalidate: invalidatePayment,
    isPending: (paymentKey) => pending.size > 0 && (pending.has(allPayments) || pending.has(paymentKey)),
    defer,
    invalidateOrDefer: (paymentKey) => invalidatePayment(paymentKey).catch(() => defer(paymentKey)),
    async flushPayment(paymentKey) {
      await flushKey(allPayments);
      await flushKey(paymentKey);
    },
    async flush() {
      await flushKey(allPayments);
      for (const key of [...pending.keys()]) await flushKey(key);
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
