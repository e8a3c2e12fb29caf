/** State in Redis: one server, the master behind sentinels, or a cluster. */

import type { RedisSettings } from '../config/schema.ts';
import type { BucketRate, KeyValues, Sets, State, TokenBuckets } from './ports.ts';
import { createCommandBatcher, createDeadline, type SendCommand } from './redis-batch.ts';
import { createRedisClient } from './redis-client.ts';
import { createRedisMonitor } from './redis-monitor.ts';
import { takeResultOf } from './token-bucket.ts';

/** How long no command is sent after one timed out. Milliseconds. */
const pauseMs = 250;
/** How long `open` waits for Redis to answer. Milliseconds. */
const openTimeoutMs = 1_000;

/**
 * Connects when `open` is called; pub/sub connects at the first subscription.
 *
 * @param prefix    of every key and every channel
 * @param onChange  called when a problem begins, ends or changes its kind
 * @param timeoutMs for the answer to a command, at most 500; within a data centre Redis answers in 1 or 2 ms
 */
export function createRedisState(
  settings: RedisSettings,
  prefix: string,
  onChange: (problem: string | undefined) => void = () => {},
  timeoutMs = 50,
): State {
  const client = createRedisClient(settings);
  const withDeadline = createDeadline(timeoutMs, settings.kind === 'cluster' ? 0 : pauseMs);
  const send = createCommandBatcher(client.executeBatch, withDeadline, client.maxBatchSize);
  const prefixed = (name: string) => `${prefix}${name}`;
  const readBytes = (key: string) => withDeadline(() => client.getBuffer(key));
  const monitor = createRedisMonitor(client, onChange);
  client.onError(monitor.onError);
  client.onStatusChange(monitor.checkNow);
  const close = async () => {
    monitor.stop();
    client.close();
  };

  return {
    keyValues: createKeyValues(send, readBytes, prefixed),
    sets: createSets(send, prefixed),
    tokenBuckets: createTokenBuckets(send, prefixed),
    pubsub: {
      publish: async (channel, message) => void (await send('PUBLISH', prefixed(channel), message)),
      subscribe: (channel, listener) => client.subscribe(prefixed(channel), listener),
    },
    async open() {
      client.connect();
      const health = await monitor.start(openTimeoutMs);
      if (health.kind !== 'unsafe') return;
      await close();
      throw new Error(health.problem);
    },
    problem: monitor.problem,
    close,
  };
}

/** @param readBytes reads a value as stored; `null` if there is none */
function createKeyValues(
  send: SendCommand,
  readBytes: (key: string) => Promise<Buffer | null>,
  prefixed: (key: string) => string,
): KeyValues {
  return {
    async read(key) {
      const value = await send('GET', prefixed(key));
      return typeof value === 'string' ? value : undefined;
    },
    write: async (key, value, ttlMs) => void (await send('SET', prefixed(key), value, ...expiry(ttlMs))),
    writeIfAbsent: async (key, value, ttlMs) =>
      (await send('SET', prefixed(key), value, 'NX', ...expiry(ttlMs))) === 'OK',
    async replace(key, expected, value, ttlMs) {
      const ttl = ttlMs === undefined ? [] : [wholeMs(ttlMs)];
      const text = expected.toWellFormed();
      const current = text.includes(replacementCharacter) ? await readBytes(prefixed(key)) : text;
      if (current?.toString() !== text) return false;
      return (await send('replaceIfUnchanged', prefixed(key), current, value, ...ttl)) === 1;
    },
    remove: async (key) => void (await send('DEL', prefixed(key))),
  };
}

/** Decoding replaces invalid bytes with this. Redis compares bytes, so the stored ones must be read and sent back. */
const replacementCharacter = '\uFFFD';

const expiry = (ttlMs?: number) => (ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]);

/** Redis accepts whole milliseconds, and at least 1. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

function createSets(send: SendCommand, prefixed: (key: string) => string): Sets {
  return {
    add: async (key, member) => void (await send('SADD', prefixed(key), member)),
    remove: async (key, member) => void (await send('SREM', prefixed(key), member)),
    members: async (key) => asList(await send('SMEMBERS', prefixed(key))).map(String),
  };
}

function createTokenBuckets(send: SendCommand, prefixed: (bucket: string) => string): TokenBuckets {
  const reserve = async (bucket: string, { perSecond, burst }: BucketRate, maxWaitMs: number) =>
    asList(await send('reservePermit', prefixed(bucket), perSecond, burst, maxWaitMs)).map(Number);
  return {
    async reserve(bucket, rate, maxWaitMs) {
      const [waitMs = 0] = await reserve(bucket, rate, maxWaitMs);
      return waitMs > maxWaitMs ? undefined : waitMs;
    },
    async take(bucket, rate) {
      const [waitMs = 0, aheadMs = 0] = await reserve(bucket, rate, 0);
      return takeResultOf(waitMs <= 0, aheadMs, rate);
    },
  };
}

const asList = (result: unknown): readonly unknown[] => (Array.isArray(result) ? result : []);
