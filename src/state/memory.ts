/** State in the memory of one process: it serves a single instance, and a restart loses it. */

import { done, knownResult, no, yes } from './known-results.ts';
import { createMemoryRequestLog } from './memory-request-log.ts';
import { createMemorySchedules } from './memory-schedules.ts';
import {
  type BucketRate,
  EpochMismatchError,
  type Fence,
  type Journals,
  type KeyValues,
  type LocalTokenBuckets,
  maxJournalTexts,
  nextSequence,
  type PubSub,
  type Sets,
  type State,
  serializeEpoch,
} from './ports.ts';
import { createSubscriptions } from './subscriptions.ts';
import { createTextSlabs, type TextHandle } from './text-slabs.ts';
import { reservePermit, takeResultOf } from './token-bucket.ts';

/** @param now milliseconds on a monotonic clock; tests pass their own */
export function createMemoryState(now: () => number = () => performance.now()): State {
  return {
    keyValues: createKeyValues(now),
    sets: createSets(),
    journals: createJournals(now),
    schedules: createMemorySchedules(now),
    tokenBuckets: createMemoryTokenBuckets(now),
    pubsub: createPubSub(),
    requestLog: createMemoryRequestLog(now),
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
  const values = createTextMap(now);
  const set = values.write;

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
    replace(key, expected, value, ttlMs, { fence, after } = {}) {
      const replace = () =>
        setFenced(key, value, ttlMs, fence, (current) => current === expected.toWellFormed());
      const isAfterSet = after ? knownResult(after) : true;
      if (isAfterSet === undefined) return (after ?? no).then((isSet) => isSet && replace());
      return isAfterSet ? resultOf(replace) : no;
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

/** Texts with a shorter time to live, and those that never expire, stay in the heap. Milliseconds. */
const minOutsideMs = 60_000;

/**
 * A map of texts. A text that is stored for long is outside of the heap until it is read: most ledger entries never are.
 * One that is read, such as a cached status, is probably read again. A lone surrogate is read back as U+FFFD.
 */
function createTextMap(now: () => number): Pick<ExpiringMap<string>, 'read' | 'write' | 'remove'> {
  const slabs = createTextSlabs();
  const texts = createExpiringMap<string | TextHandle>(now, (discarded) => {
    if (typeof discarded === 'number') slabs.remove(discarded);
  });
  return {
    read(key) {
      const stored = texts.read(key);
      if (typeof stored !== 'number') return stored;
      const text = slabs.read(stored);
      texts.replace(key, text);
      return text;
    },
    write(key, text, ttlMs = Number.POSITIVE_INFINITY) {
      const isLasting = ttlMs >= minOutsideMs && ttlMs < Number.POSITIVE_INFINITY;
      texts.write(key, (isLasting ? slabs.add(text) : undefined) ?? text.toWellFormed(), ttlMs);
    },
    remove: texts.remove,
  };
}

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

function createJournals(now: () => number): Journals {
  const journals = createExpiringMap<readonly string[]>(now);
  return {
    append(key, texts, ttlMs) {
      if (texts.length === 0) return done;
      const all = [...(journals.read(key) ?? []), ...texts.map((text) => text.toWellFormed())];
      journals.write(key, all.slice(-maxJournalTexts), ttlMs);
      return done;
    },
    read: (key) => Promise.resolve(journals.read(key) ?? []),
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
    publish(channel, message) {
      if (published.push([channel, message]) === 1) setImmediate(deliverAll);
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
  /** Replaces the value of a stored entry; its time to live stays. */
  replace(key: string, value: Value): void;
  remove(key: string): void;
  /** Number of stored entries, including expired ones that are not evicted yet. */
  size(): number;
}

/** How many entries each write checks for expiry, in turn. */
const checkedPerWrite = 4;
/** V8 rebuilds a full Map in one step, which takes a tenth of a second for half a million keys: so there are several. */
const mapCount = 64;

/**
 * Expired entries are evicted when they are read, and gradually by writes: all entries are checked during a quarter as many writes,
 * and no single write is slow.
 *
 * The entries are columns of a table, not objects: the garbage collector would visit each object.
 *
 * @param now     milliseconds on a monotonic clock
 * @param discard called with a value that was replaced, removed or evicted
 */
export function createExpiringMap<Value>(
  now: () => number,
  discard: (value: Value) => void = () => {},
): ExpiringMap<Value> {
  /** The row of each key, in the Map that its last character but one selects. Most keys end with a hash, where it has 64 values. */
  const maps = Array.from({ length: mapCount }, () => new Map<string, number>());
  const [shortKeys = new Map<string, number>()] = maps;
  const rowsFor = (key: string): Map<string, number> =>
    maps[key.charCodeAt(key.length - 2) % mapCount] ?? shortKeys;
  /** Columns. A free row has no key and never expires. */
  const keys: (string | undefined)[] = [];
  const values: (Value | undefined)[] = [];
  /** On the clock of the map; `Infinity` if the entry never expires. */
  let expiresAtMs = new Float64Array(64);
  const freeRows: number[] = [];
  let cursor = 0;

  function addRow(key: string): number {
    const row = freeRows.pop() ?? keys.length;
    if (row === expiresAtMs.length) {
      const longer = new Float64Array(2 * row);
      longer.set(expiresAtMs);
      expiresAtMs = longer;
    }
    keys[row] = key;
    rowsFor(key).set(key, row);
    return row;
  }

  function setValue(row: number, value: Value): void {
    const former = values[row];
    values[row] = value;
    if (former !== undefined) discard(former);
  }

  function removeRow(row: number): void {
    const [key, value] = [keys[row], values[row]];
    if (key === undefined) return;
    rowsFor(key).delete(key);
    keys[row] = undefined;
    values[row] = undefined;
    expiresAtMs[row] = Number.POSITIVE_INFINITY;
    freeRows.push(row);
    if (value !== undefined) discard(value);
  }

  const hasExpired = (row: number, nowMs: number) => (expiresAtMs[row] ?? 0) <= nowMs;

  function evictSome(nowMs: number): void {
    for (let checked = 0; checked < checkedPerWrite; checked++) {
      if (cursor >= keys.length) cursor = 0;
      if (hasExpired(cursor, nowMs)) removeRow(cursor);
      cursor++;
    }
  }

  return {
    read(key) {
      const row = rowsFor(key).get(key);
      if (row === undefined) return undefined;
      if (!hasExpired(row, now())) return values[row];
      removeRow(row);
      return undefined;
    },
    write(key, value, ttlMs = Number.POSITIVE_INFINITY) {
      const nowMs = now();
      const row = rowsFor(key).get(key) ?? addRow(key);
      setValue(row, value);
      expiresAtMs[row] = nowMs + ttlMs;
      evictSome(nowMs);
    },
    replace(key, value) {
      const row = rowsFor(key).get(key);
      if (row !== undefined) setValue(row, value);
    },
    remove(key) {
      const row = rowsFor(key).get(key);
      if (row !== undefined) removeRow(row);
    },
    size: () => keys.length - freeRows.length,
  };
}
