/**
 * The cached payments: in the Redis that all instances share, or in the process. Each change is one compare-and-set on the payment. An
 * invalidation that fails is retried: until it succeeds, this instance serves no status of the payment that was cached in Redis.
 *
 * While Redis cannot be reached, each instance has a cache of its own. The others know nothing of it, so it contains only responses with a
 * status that is final.
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

/** Where payments are cached. */
export interface CachePlaces {
  /** Shared by all instances, or of the only one. */
  readonly keyValues: KeyValues;
  /** In the process: used while the shared place cannot be reached. Missing if there is no shared place. */
  readonly own?: KeyValues | undefined;
  /** Whether `keyValues` is in the process although there may be other instances: then they know nothing of it. */
  readonly isUnshared?: boolean | undefined;
}

/** A payment, and its text in the place where it was found. */
export interface StoredPayment extends CachedPayment {
  readonly text: string | undefined;
  /** Whether it was found in the own place, because the shared one cannot be reached. */
  readonly isOwn: boolean;
}

/** Each operation throws GatewayError STATE_UNAVAILABLE if the state cannot be reached or rejects the change. */
export interface CacheStore {
  /** Whether or not an invalidation is pending. */
  readUnflushed(paymentKey: string): Promise<StoredPayment>;
  /**
   * Writes a pending invalidation of the payment first. From the own place if the shared one cannot be reached; `undefined` if there is
   * none.
   */
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

const nothingStored: StoredPayment = { ...parseCachedPayment(undefined), text: undefined, isOwn: false };

/**
 * @param storedForMs  how long a payment is stored after its last change; longer than any of its responses is useful
 * @param invalidation a pending one is written before a payment is read or a status read is recorded
 */
export function createCacheStore(
  { keyValues, own, isUnshared = false }: CachePlaces,
  storedForMs: number,
  { isPending, flushPayment }: Pick<Invalidation, 'isPending' | 'flushPayment'>,
): CacheStore {
  const ttlMs = Math.max(storedForMs, maxCallMs);
  const parse = createParseCache(
    (text): StoredPayment => ({ ...parseCachedPayment(text), text, isOwn: false }),
  );
  const parseStored = (paymentKey: string, text: string | undefined) =>
    text === undefined ? nothingStored : parse(paymentKey, text);

  const readStored = (paymentKey: string): Promise<StoredPayment> =>
    keyValues.read(paymentKey).then((text) => parseStored(paymentKey, text));

  function read(paymentKey: string): Promise<StoredPayment> {
    if (!isPending(paymentKey)) return readStored(paymentKey);
    return flushPayment(paymentKey).then(() => readStored(paymentKey));
  }

  async function readOwn(place: KeyValues, paymentKey: string): Promise<StoredPayment> {
    const text = await place.read(paymentKey);
    return { ...parseCachedPayment(text), text, isOwn: true };
  }

  /** Changes the payment in the own place as well, if it is there: it must not show later what is outdated. */
  async function changeOwn(
    paymentKey: string,
    change: (payment: StoredPayment) => CachedPayment | undefined,
  ): Promise<void> {
    const payment = own && (await readOwn(own, paymentKey));
    if (payment?.text !== undefined) await update(paymentKey, payment, (one) => [undefined, change(one)]);
  }

  /** Changes the payment in both places. */
  async function changeBoth(
    paymentKey: string,
    change: (payment: StoredPayment) => CachedPayment,
  ): Promise<void> {
    await changeOwn(paymentKey, change);
    await update(paymentKey, await readStored(paymentKey), (payment) => [undefined, change(payment)]);
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
      const place = own && payment.isOwn ? own : keyValues;
      if (await compareAndSet(place, paymentKey, payment.text, serializeCachedPayment(changed)))
        return outcome;
      payment = own && payment.isOwn ? await readOwn(own, paymentKey) : await readStored(paymentKey);
    }
    throw new GatewayError(
      'STATE_UNAVAILABLE',
      `The cached payment was not updated: other instances changed it ${maxAttempts} times.`,
    );
  }

  const compareAndSet = (
    place: KeyValues,
    paymentKey: string,
    before: string | undefined,
    after: string,
  ): Promise<boolean> =>
    before === undefined
      ? place.writeIfAbsent(paymentKey, after, ttlMs)
      : place.replace(paymentKey, before, after, ttlMs);

  return {
    readUnflushed: readStored,
    tryRead: (paymentKey) => read(paymentKey).catch(() => (own ? readOwn(own, paymentKey) : undefined)),
    async recordRead(paymentKey, before, { responses, ...seen }) {
      const isUnknownToOthers = before.isOwn || isUnshared;
      const read = { ...seen, responses: isUnknownToOthers && !seen.isFinal ? {} : responses };
      if (before.isOwn)
        return update(paymentKey, before, (payment) => recordRead(payment, before.generation, read));
      await changeOwn(paymentKey, ({ statusHash }) =>
        statusHash === seen.statusHash ? undefined : invalidatedPayment(),
      );
      await flushPayment(paymentKey); // an observation that was not recorded while the state was unavailable
      const storesNothing = Object.keys(read.responses).length === 0;
      // Without a response to store, perhaps nothing is written, and no compare-and-set shows that `before` is outdated.
      const first = storesNothing ? await readStored(paymentKey) : before;
      return update(paymentKey, first, (payment) => recordRead(payment, before.generation, read));
    },
    async recordObservation(paymentKey, observation, before = readStored(paymentKey)) {
      const stored = before.then((first) =>
        update(paymentKey, first, (payment) => {
          const changed = recordObservation(payment, observation);
          const wasKnown = payment.statusHash !== undefined || observation.what !== 'status';
          return [changed !== undefined && wasKnown, changed];
        }),
      );
      const inOwn = changeOwn(paymentKey, (payment) => recordObservation(payment, observation));
      const [mayHaveChanged] = await Promise.all([stored, inOwn]);
      return mayHaveChanged;
    },
    deleteCredential: (paymentKey, credential) =>
      changeBoth(paymentKey, (payment) => withoutCredential(payment, credential)),
    expire: (paymentKey) => changeBoth(paymentKey, expiredPayment),
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
  /** In the shared place. */
  readonly invalidatePayment: (paymentKey: string) => Promise<void>;
  /** In the own place, which never fails. */
  readonly invalidateOwn: (paymentKey: string) => Promise<void>;
  readonly invalidateAll: () => Promise<void>;
}

/** Beyond this number, all payments are invalidated; 100 bytes each. */
const maxPending = 10_000;
const allPayments = '*';

export function createInvalidation(targets: InvalidationTargets): Invalidation {
  const { invalidatePayment, invalidateOwn, invalidateAll } = targets;
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

  async function invalidate(paymentKey: string): Promise<void> {
    await invalidateOwn(paymentKey);
    await invalidatePayment(paymentKey);
  }

  return {
    invalidate,
    isPending: (paymentKey) => pending.size > 0 && (pending.has(allPayments) || pending.has(paymentKey)),
    defer,
    invalidateOrDefer: (paymentKey) => invalidate(paymentKey).catch(() => defer(paymentKey)),
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
    await writeInvalidated(keyValues, paymentKey);
    changes.notify(paymentKey);
  };

export const createInvalidateOwn =
  (own: CachePlaces['own']): InvalidationTargets['invalidateOwn'] =>
  async (paymentKey) => {
    if (own) await writeInvalidated(own, paymentKey);
  };

const writeInvalidated = (place: KeyValues, paymentKey: string): Promise<void> =>
  place.write(paymentKey, serializeCachedPayment(invalidatedPayment()), maxCallMs);
