/** The commands that keep values and sets and book turns in Redis: its own, and ours of redis-scripts.ts. */

import type { BucketRate, KeyValues, Reservations, Sets } from './ports.ts';
import type { Ask } from './redis-breath.ts';
import { takingOf } from './token-bucket.ts';

/**
 * @param bytesOf what stands under a key in Redis, `null` if nothing does
 * @param named   the key in Redis for a key of ours
 */
export function keyValuesBy(
  ask: Ask,
  bytesOf: (name: string) => Promise<Buffer | null>,
  named: (key: string) => string,
): KeyValues {
  return {
    async read(key) {
      const value = await ask('GET', named(key));
      return typeof value === 'string' ? value : undefined;
    },
    write: async (key, value, ttlMs) => void (await ask('SET', named(key), value, ...expiry(ttlMs))),
    writeIfAbsent: async (key, value, ttlMs) =>
      (await ask('SET', named(key), value, 'NX', ...expiry(ttlMs))) === 'OK',
    async replace(key, expected, value, ttlMs) {
      const ttl = ttlMs === undefined ? [] : [wholeMs(ttlMs)];
      const text = expected.toWellFormed();
      const stands = text.includes(illegible) ? await bytesOf(named(key)) : text;
      if (stands?.toString() !== text) return false;
      return (await ask('replaceIfUnchanged', named(key), stands, value, ...ttl)) === 1;
    },
    remove: async (key) => void (await ask('DEL', named(key))),
  };
}

/** What bytes are read as that are no text. Redis compares bytes: those that stand there, and not how they were read. */
const illegible = '\uFFFD';

const expiry = (ttlMs?: number) => (ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]);

/** Redis counts whole milliseconds, and takes no value that lives for none. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

/** @param named the key in Redis for a key of ours */
export function setsBy(ask: Ask, named: (key: string) => string): Sets {
  return {
    add: async (key, member) => void (await ask('SADD', named(key), member)),
    remove: async (key, member) => void (await ask('SREM', named(key), member)),
    members: async (key) => listIn(await ask('SMEMBERS', named(key))).map(String),
  };
}

/** @param named the key in Redis for a bucket */
export function reservationsBy(ask: Ask, named: (bucket: string) => string): Reservations {
  const book = async (bucket: string, { perSecond, burst }: BucketRate, maxWaitMs: number) =>
    listIn(await ask('reserveTurn', named(bucket), perSecond, burst, maxWaitMs)).map(Number);
  return {
    async reserve(bucket, rate, maxWaitMs) {
      const [waitMs = 0] = await book(bucket, rate, maxWaitMs);
      return waitMs > maxWaitMs ? undefined : waitMs;
    },
    async take(bucket, rate) {
      const [waitMs = 0, aheadMs = 0] = await book(bucket, rate, 0);
      return takingOf(waitMs <= 0, aheadMs, rate);
    },
  };
}

const listIn = (answer: unknown): readonly unknown[] => (Array.isArray(answer) ? answer : []);
