/** State in the memory of one process: it serves a single instance, and a restart loses it. */

import type { BucketRate, KeyValues, LocalTokenBuckets, PubSub, State } from './ports.ts';
import { createSubscriptions } from './subscriptions.ts';
import { reservePermit, takeResultOf } from './token-bucket.ts';

/** @param now milliseconds on a monotonic clock; tests pass their own */
export function createMemoryState(now: () => number = () => performance.now()): State {
  return {
    keyValues: createKeyValues(now),
    tokenBuckets: createMemoryTokenBuckets(now),
    pubsub: createPubSub(),
    async open() {},
    problem: () => undefined,
    warnings: () => [],
    async close() {},
  };
}

/** A lone surrogate is read back as U+FFFD. */
function createKeyValues(now: () => number): KeyValues {
  const values = createExpiringMap<string>(now);
  const isEqual = (key: string, expected: string) => values.read(key) === expected.toWellFormed();
  const set = (key: string, value: string, ttlMs?: number) => values.write(key, value.toWellFormed(), ttlMs);

  return {
    read: async (key) => values.read(key),
    write: async (key, value, ttlMs) => set(key, value, ttlMs),
    async writeIfAbsent(key, value, ttlMs) {
      if (values.read(key) !== undefined) return false;
      set(key, value, ttlMs);
      return true;
    },
    async replace(key, expected, value, ttlMs) {
      if (!isEqual(key, expected)) return false;
      set(key, value, ttlMs);
      return true;
    },
    remove: async (key) => values.remove(key),
    async removeIf(key, expected) {
      if (!isEqual(key, expected)) return false;
      values.remove(key);
      return true;
    },
  };
}

/** Token buckets of this process alone. @param now milliseconds on a monotonic clock */
export function createMemoryTokenBuckets(now: () => number): LocalTokenBuckets {
  const arrivalTimes = createExpiringMap<number>(now);
  const reserve = (bucket: string, rate: BucketRate, maxWaitMs: number) => {
    const nowMs = now();
    const permit = reservePermit(arrivalTimes.read(bucket), nowMs, rate, maxWaitMs);
    if (permit) arrivalTimes.write(bucket, permit.theoreticalArrivalMs, permit.theoreticalArrivalMs - nowMs);
    return permit;
  };
  return {
    isShared: false,
    reserve: (bucket, rate, maxWaitMs) => reserve(bucket, rate, maxWaitMs)?.waitMs,
    take(bucket, rate) {
      const nowMs = now();
      const permit = reserve(bucket, rate, 0);
      const aheadMs = (permit?.theoreticalArrivalMs ?? arrivalTimes.read(bucket) ?? nowMs) - nowMs;
      return takeResultOf(permit !== undefined, Math.max(0, aheadMs), rate);
    },
  };
}

/** Delivers messages asynchronously, as the network does. */
function createPubSub(): PubSub {
  const subscriptions = createSubscriptions();
  let published: (readonly [channel: string, message: string])[] = [];

  function deliverAll(): void {
    const messages = published;
    published = [];
    for (const [channel, message] of messages) subscriptions.deliver(channel, message);
  }

  return {
    async publish(channel, message) {
      if (published.push([channel, message]) === 1) setImmediate(deliverAll);
    },
    subscribe: (channel, listener) => subscriptions.add(channel, listener),
  };
}

/** A map whose entries can expire. */
interface ExpiringMap<Value> {
  /** The value, or `undefined` if there is none or it has expired. */
  read(key: string): Value | undefined;
  /** @param ttlMs time to live; without it the value never expires */
  write(key: string, value: Value, ttlMs?: number): void;
  remove(key: string): void;
  /** Number of stored entries, including expired ones that are not evicted yet. */
  size(): number;
}

interface Entry<Value> {
  readonly value: Value;
  readonly expiresAtMs: number;
}

/** How many entries each write checks for expiry, in turn. */
const checkedPerWrite = 4;

/**
 * Expired entries are evicted when they are read, and gradually by writes: all entries are checked during a quarter as many writes,
 * and no single write is slow.
 *
 * @param now milliseconds on a monotonic clock
 */
export function createExpiringMap<Value>(now: () => number): ExpiringMap<Value> {
  const entries = new Map<string, Entry<Value>>();
  /** Continues at the next write; entries may be added and removed in between. */
  let unchecked = entries.entries();

  function evictSome(nowMs: number): void {
    for (let checked = 0; checked < checkedPerWrite; checked++) {
      const next = unchecked.next();
      if (next.done) {
        unchecked = entries.entries();
        return;
      }
      const [key, { expiresAtMs }] = next.value;
      if (expiresAtMs <= nowMs) entries.delete(key);
    }
  }

  return {
    read(key) {
      const entry = entries.get(key);
      if (entry === undefined || entry.expiresAtMs > now()) return entry?.value;
      entries.delete(key);
      return undefined;
    },
    write(key, value, ttlMs = Number.POSITIVE_INFINITY) {
      const nowMs = now();
      entries.set(key, { value, expiresAtMs: nowMs + ttlMs });
      evictSome(nowMs);
    },
    remove: (key) => void entries.delete(key),
    size: () => entries.size,
  };
}
