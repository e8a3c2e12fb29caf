/** State in the memory of one process: for one instance alone, and a restart forgets it. */

import type { BucketRate, KeyValues, PubSub, Sets, State, TokenBuckets } from './ports.ts';
import { createSubscriptions } from './subscriptions.ts';
import { reservePermit, takeResultOf } from './token-bucket.ts';

/** An empty state. @param now milliseconds on a clock that does not run backwards; a test may set it */
export function createMemoryState(now: () => number = () => performance.now()): State {
  return {
    keyValues: createKeyValues(now),
    sets: createSets(),
    tokenBuckets: createMemoryTokenBuckets(now),
    pubsub: createPubSub(),
    async open() {},
    problem: () => undefined,
    async close() {},
  };
}

function createKeyValues(now: () => number): KeyValues {
  const values = createExpiringMap<string>(now);
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
      if (values.read(key) !== expected.toWellFormed()) return false;
      set(key, value, ttlMs);
      return true;
    },
    remove: async (key) => values.remove(key),
  };
}

function createSets(): Sets {
  const sets = new Map<string, Set<string>>();
  return {
    async add(key, member) {
      const known = sets.get(key) ?? new Set();
      sets.set(key, known.add(member.toWellFormed()));
    },
    async remove(key, member) {
      const known = sets.get(key);
      if (known?.delete(member.toWellFormed()) && known.size === 0) sets.delete(key);
    },
    members: async (key) => [...(sets.get(key) ?? [])],
  };
}

/** Turns of one process alone. */
export function createMemoryTokenBuckets(now: () => number): TokenBuckets {
  const arrivalTimes = createExpiringMap<number>(now);
  const book = (bucket: string, rate: BucketRate, maxWaitMs: number) => {
    const nowMs = now();
    const turn = reservePermit(arrivalTimes.read(bucket), nowMs, rate, maxWaitMs);
    if (turn) arrivalTimes.write(bucket, turn.theoreticalArrivalMs, turn.theoreticalArrivalMs - nowMs);
    return turn;
  };
  return {
    reserve: async (bucket, rate, maxWaitMs) => book(bucket, rate, maxWaitMs)?.waitMs,
    async take(bucket, rate) {
      const nowMs = now();
      const turn = book(bucket, rate, 0);
      const aheadMs = (turn?.theoreticalArrivalMs ?? arrivalTimes.read(bucket) ?? nowMs) - nowMs;
      return takeResultOf(turn !== undefined, Math.max(0, aheadMs), rate);
    },
  };
}

/** Messages arrive later than `publish` begins, as they do where they travel. */
function createPubSub(): PubSub {
  const listeners = createSubscriptions();
  return {
    publish: async (channel, message) => void setImmediate(() => listeners.deliver(channel, message)),
    subscribe: (channel, listener) => listeners.add(channel, listener),
  };
}

// MERGED HEADER (rewrite or remove):
/* A map whose entries can expire. */

/** How many entries each write looks at, to drop the expired ones that nobody asks for any more. */
const checkedPerWrite = 4;

interface Entry<Value> {
  readonly value: Value;
  /** On the clock of the map; `Infinity` if the entry lives for ever. */
  readonly expiresMs: number;
}

/** Values under names, each for a time. */
export interface ExpiringMap<Value> {
  /** The value, or `undefined` if there is none or it has expired. */
  read(key: string): Value | undefined;
  /** @param ttlMs how long the value lives; for ever if left out */
  write(key: string, value: Value, ttlMs?: number): void;
  remove(key: string): void;
  /** How many entries are held, expired ones included that are not dropped yet. */
  size(): number;
}

/**
 * An empty map.
 *
 * Expired entries are dropped when they are read, and bit by bit by the writes: each looks at a few entries in turn,
 * so that after a quarter as many writes as there are entries all of them have been looked at, and no write is slow.
 *
 * @param now milliseconds on any clock that does not run backwards
 */
export function createExpiringMap<Value>(now: () => number): ExpiringMap<Value> {
  const entries = new Map<string, Entry<Value>>();
  let cursor = entries.entries();

  const sweep = () => {
    const nowMs = now();
    for (let looked = 0; looked < checkedPerWrite; looked++) {
      const { value: found } = cursor.next();
      if (!found) {
        cursor = entries.entries();
        return;
      }
      if (found[1].expiresMs <= nowMs) entries.delete(found[0]);
    }
  };

  return {
    read(key) {
      const entry = entries.get(key);
      if (!entry) return undefined;
      if (entry.expiresMs > now()) return entry.value;
      entries.delete(key);
      return undefined;
    },
    write(key, value, ttlMs = Number.POSITIVE_INFINITY) {
      entries.set(key, { value, expiresMs: now() + ttlMs });
      sweep();
    },
    remove: (key) => void entries.delete(key),
    size: () => entries.size,
  };
}
