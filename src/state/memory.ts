/** State in the memory of one process: for one instance alone, and a restart forgets it. */

import { createExpiringMap } from './expiring-map.ts';
import { createListeners } from './listeners.ts';
import type { Announcements, BucketRate, KeyValues, Reservations, Sets, State } from './ports.ts';
import { reserveTurn, takingOf } from './token-bucket.ts';

/** An empty state. @param now milliseconds on a clock that does not run backwards; a test may set it */
export function createMemoryState(now: () => number = () => performance.now()): State {
  return {
    keyValues: keyValuesOn(now),
    sets: setsHere(),
    reservations: reservationsOn(now),
    announcements: announcementsHere(),
    async open() {},
    trouble: () => undefined,
    async close() {},
  };
}

function keyValuesOn(now: () => number): KeyValues {
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

function setsHere(): Sets {
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
export function reservationsOn(now: () => number): Reservations {
  const arrivals = createExpiringMap<number>(now);
  const book = (bucket: string, rate: BucketRate, maxWaitMs: number) => {
    const nowMs = now();
    const turn = reserveTurn(arrivals.read(bucket), nowMs, rate, maxWaitMs);
    if (turn) arrivals.write(bucket, turn.theoreticalArrivalMs, turn.theoreticalArrivalMs - nowMs);
    return turn;
  };
  return {
    reserve: async (bucket, rate, maxWaitMs) => book(bucket, rate, maxWaitMs)?.waitMs,
    async take(bucket, rate) {
      const nowMs = now();
      const turn = book(bucket, rate, 0);
      const aheadMs = (turn?.theoreticalArrivalMs ?? arrivals.read(bucket) ?? nowMs) - nowMs;
      return takingOf(turn !== undefined, Math.max(0, aheadMs), rate);
    },
  };
}

/** Messages arrive later than `publish` begins, as they do where they travel. */
function announcementsHere(): Announcements {
  const listeners = createListeners();
  return {
    publish: async (channel, message) => void setImmediate(() => listeners.tell(channel, message)),
    subscribe: (channel, listener) => listeners.add(channel, listener),
  };
}
