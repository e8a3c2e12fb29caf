/** State in the memory of one process: it serves a single instance, and a restart loses it. */

import {
  type BucketRate,
  EpochMismatchError,
  type Fence,
  type KeyValues,
  type LocalTokenBuckets,
  nextSequence,
  type PubSub,
  type Sets,
  type State,
  serializeEpoch,
} from './ports.ts';
import { createSubscriptions } from './subscriptions.ts';
import { reservePermit, takeResultOf } from './token-bucket.ts';

/** @param now milliseconds on a monotonic clock; tests pass their own */
export function createMemoryState(now: () => number = () => performance.now()): State {
  return {
    keyValues: createKeyValues(now),
    sets: createSets(),
    tokenBuckets: createMemoryTokenBuckets(now),
    pubsub: createPubSub(),
    async open() {},
    problem: () => undefined,
    warnings: () => [],
    lossRisks: () => [],
    async close() {},
    partitions: [''],
    identity: async () => 'memory',
    onDisconnect() {},
  };
}

function createKeyValues(now: () => number): KeyValues {
  const values = createExpiringMap<string>(now);
  const set = (key: string, value: string, ttlMs?: number) => values.write(key, value.toWellFormed(), ttlMs);

  function setFenced(
    key: string,
    value: string,
    ttlMs: number | undefined,
    fence: Fence | undefined,
    isExpected: (current: string | undefined) => boolean,
  ): boolean {
    const sequence = fence && nextSequence(fence, values.read(fence.key));
    if (fence && sequence === undefined) throw new EpochMismatchError();
    if (!isExpected(values.read(key))) return false;
    set(key, value, ttlMs);
    if (fence && sequence !== undefined) {
      fence.sequence = sequence;
      set(fence.key, serializeEpoch(fence));
    }
    return true;
  }

  return {
    read: (key) => Promise.resolve(values.read(key)),
    readNow: values.read,
    write(key, value, ttlMs) {
      set(key, value, ttlMs);
      return done;
    },
    writeIfAbsent: (key, value, ttlMs, fence) =>
      resultOf(() => setFenced(key, value, ttlMs, fence, (current) => current === undefined)),
    replace(key, expected, value, ttlMs, fence, _confirmedBy, after) {
      const replace = () =>
        setFenced(key, value, ttlMs, fence, (current) => current === expected.toWellFormed());
      return after ? after.then((isSet) => isSet && replace()) : resultOf(replace);
    },
    remove(key) {
      values.remove(key);
      return done;
    },
    removeIf(key, expected) {
      if (values.read(key) !== expected.toWellFormed()) return no;
      values.remove(key);
      return yes;
    },
  };
}

/** Settled promises that all operations share: most results are one of these. */
const done = Promise.resolve();
const yes = Promise.resolve(true);
const no = Promise.resolve(false);

function resultOf(operation: () => boolean): Promise<boolean> {
  try {
    return operation() ? yes : no;
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

function createSets(): Sets {
  const sets = new Map<string, Set<string>>();
  return {
    add(key, member) {
      const members = sets.get(key) ?? new Set();
      sets.set(key, members.add(member.toWellFormed()));
      return done;
    },
    remove(key, member) {
      const members = sets.get(key);
      if (members?.delete(member.toWellFormed()) && members.size === 0) sets.delete(key);
      return done;
    },
    members: (key) => Promise.resolve([...(sets.get(key) ?? [])]),
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
  return {
    publish(channel, message) {
      setImmediate(() => subscriptions.deliver(channel, message));
      return done;
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

interface ExpiringEntry<Value> {
  readonly value: Value;
  /** On the clock of the map; `Infinity` if the entry never expires. */
  readonly expiresAtMs: number;
}

/** How many entries each write checks for expiry. */
const checkedPerWrite = 4;

/**
 * Expired entries are evicted when they are read, and gradually by writes: each write checks a few entries in turn.
 * A full round takes a quarter as many writes as there are entries, and no single write is slow.
 *
 * @param now milliseconds on a monotonic clock
 */
export function createExpiringMap<Value>(now: () => number): ExpiringMap<Value> {
  const entries = new Map<string, ExpiringEntry<Value>>();
  let cursor = entries.entries();

  const evictSome = () => {
    const nowMs = now();
    for (let checked = 0; checked < checkedPerWrite; checked++) {
      const { value: found } = cursor.next();
      if (!found) {
        cursor = entries.entries();
        return;
      }
      if (found[1].expiresAtMs <= nowMs) entries.delete(found[0]);
    }
  };

  return {
    read(key) {
      const entry = entries.get(key);
      if (!entry) return undefined;
      if (entry.expiresAtMs > now()) return entry.value;
      entries.delete(key);
      return undefined;
    },
    write(key, value, ttlMs = Number.POSITIVE_INFINITY) {
      entries.set(key, { value, expiresAtMs: now() + ttlMs });
      evictSome();
    },
    remove: (key) => void entries.delete(key),
    size: () => entries.size,
  };
}
