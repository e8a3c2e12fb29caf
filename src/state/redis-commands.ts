/** The commands that keep values and sets and book turns in Redis. */

import type { BucketRate, KeyValues, Reservations, Sets } from './ports.ts';
import type { AnswerTo } from './redis-answer.ts';
import { takingOf } from './token-bucket.ts';

/** What is asked of Redis: some of its commands, and the scripts of redis-scripts.ts. */
export interface Commands {
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<'OK'>;
  set(key: string, value: string, px: 'PX', ttlMs: number): Promise<'OK'>;
  set(key: string, value: string, nx: 'NX'): Promise<'OK' | null>;
  set(key: string, value: string, px: 'PX', ttlMs: number, nx: 'NX'): Promise<'OK' | null>;
  del(key: string): Promise<number>;
  sadd(key: string, member: string): Promise<number>;
  srem(key: string, member: string): Promise<number>;
  smembers(key: string): Promise<string[]>;
  replaceIfUnchanged(key: string, expected: string, value: string, ...ttlMs: number[]): Promise<number>;
  reserveTurn(
    key: string,
    perSecond: number,
    burst: number,
    maxWaitMs: number,
  ): Promise<readonly [waitMs: string, aheadMs: string]>;
}

/** @param named the key in Redis for a key of ours */
export function keyValuesBy(
  commands: Commands,
  named: (key: string) => string,
  answerTo: AnswerTo,
): KeyValues {
  return {
    read: async (key) => (await answerTo(() => commands.get(named(key)))) ?? undefined,
    async write(key, value, ttlMs) {
      const forEver = ttlMs === undefined;
      await answerTo(() =>
        forEver ? commands.set(named(key), value) : commands.set(named(key), value, 'PX', wholeMs(ttlMs)),
      );
    },
    async writeIfAbsent(key, value, ttlMs) {
      const forEver = ttlMs === undefined;
      const set = await answerTo(() =>
        forEver
          ? commands.set(named(key), value, 'NX')
          : commands.set(named(key), value, 'PX', wholeMs(ttlMs), 'NX'),
      );
      return set === 'OK';
    },
    async replace(key, expected, value, ttlMs) {
      const ttl = ttlMs === undefined ? [] : [wholeMs(ttlMs)];
      return (await answerTo(() => commands.replaceIfUnchanged(named(key), expected, value, ...ttl))) === 1;
    },
    remove: async (key) => void (await answerTo(() => commands.del(named(key)))),
  };
}

/** Redis counts whole milliseconds, and takes no value that lives for none. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

/** @param named the key in Redis for a key of ours */
export function setsBy(commands: Commands, named: (key: string) => string, answerTo: AnswerTo): Sets {
  return {
    add: async (key, member) => void (await answerTo(() => commands.sadd(named(key), member))),
    remove: async (key, member) => void (await answerTo(() => commands.srem(named(key), member))),
    members: (key) => answerTo(() => commands.smembers(named(key))),
  };
}

/** @param named the key in Redis for a bucket */
export function reservationsBy(
  commands: Commands,
  named: (bucket: string) => string,
  answerTo: AnswerTo,
): Reservations {
  const book = async (bucket: string, { perSecond, burst }: BucketRate, maxWaitMs: number) =>
    (await answerTo(() => commands.reserveTurn(named(bucket), perSecond, burst, maxWaitMs))).map(Number);
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
