/** State in Redis: one server, the master behind sentinels, or a cluster. */

import {
  type BucketRate,
  type GrantedPermits,
  type KeyValues,
  permitLeaseMs,
  type SharedTokenBuckets,
  type State,
} from './ports.ts';
import { createCommandBatcher, createDeadline, type RedisCommand, tookEffect } from './redis-batch.ts';
import { createRedisClient } from './redis-client.ts';
import { createRedisMonitor, nearlyFull } from './redis-monitor.ts';
import type { RedisConnectionSettings } from './redis-options.ts';
import { takeResultOf } from './token-bucket.ts';

/** How long `open` waits for Redis to answer. Milliseconds. */
const openTimeoutMs = 1_000;

/**
 * Connects when `open` is called; pub/sub connects at the first subscription.
 *
 * @param prefix    of every key and every channel
 * @param onChange  called when a problem begins, ends or changes its kind
 * @param timeoutMs for the answer to a command (ADR 67); within a data centre Redis answers in 1 or 2 ms
 */
export function createRedisState(
  settings: RedisConnectionSettings,
  prefix: string,
  onChange: (problem: string | undefined) => void = () => {},
  timeoutMs = 250,
): State {
  const client = createRedisClient(settings, timeoutMs);
  const withDeadline = createDeadline(timeoutMs);
  const sendCommand = createCommandBatcher(client.executeBatch, withDeadline, client.maxBatchSize);
  const prefixed = (name: string) => `${prefix}${name}`;
  const send: Send = (convert, name, key, ...args) =>
    sendCommand({ name, key: prefixed(key), args }, convert);
  const monitor = createRedisMonitor(client, onChange, timeoutMs);
  client.onError(monitor.onError);
  client.onStatusChange(monitor.checkNow);
  const close = async () => {
    monitor.stop();
    client.close();
  };

  return {
    keyValues: createKeyValues(send, (key) => withDeadline(() => client.getBuffer(prefixed(key)))),
    tokenBuckets: createTokenBuckets(send, (convert, bucket, ...args) => {
      const key = prefixed(bucket);
      const otherKeys = [`${prefix}{${key}}:leases`]; // the same slot of a cluster, and below the prefix
      return sendCommand({ name: 'leasePermits', key, otherKeys, args }, convert);
    }),
    pubsub: {
      publish: (channel, message) => send(toVoid, 'PUBLISH', channel, message),
      subscribe: (channel, listener) => client.subscribe(prefixed(channel), listener),
    },
    async open() {
      client.connect();
      const health = await monitor.start(openTimeoutMs);
      if (health.kind !== 'unusable') return;
      await close();
      throw new Error(health.problem);
    },
    problem: monitor.problem,
    warnings: () => (monitor.isNearlyFull() ? [nearlyFull] : []),
    close,
  };
}

/** Sends a command on one key, and converts its result. */
type Send = <Value>(
  convert: (result: unknown) => Value,
  name: string,
  key: string,
  ...args: RedisCommand['args']
) => Promise<Value>;

/** @param readBytes reads a value as stored; `null` if there is none */
function createKeyValues(send: Send, readBytes: (key: string) => Promise<Buffer | null>): KeyValues {
  /**
   * Changes a value if its text is `expected`. For a stored value that is not valid UTF-8, its bytes are read, so that Redis can
   * compare them.
   */
  async function changeIf(
    key: string,
    expected: string,
    change: (current: string | Buffer) => Promise<boolean>,
  ): Promise<boolean> {
    const text = expected.toWellFormed();
    if (!text.includes(replacementCharacter)) return change(text);
    const stored = await readBytes(key);
    return stored?.toString() === text && change(stored);
  }

  return {
    read: (key) => send(textOrNone, 'GET', key),
    write: (key, value, ttlMs) => send(toVoid, 'SET', key, value, ...expiry(ttlMs)),
    writeIfAbsent: (key, value, ttlMs) => send(tookEffect, 'SET', key, value, 'NX', ...expiry(ttlMs)),
    replace: (key, expected, value, ttlMs) =>
      changeIf(key, expected, (current) =>
        send(tookEffect, 'replaceIfUnchanged', key, current, value, ...optionalTtl(ttlMs)),
      ),
    remove: (key) => send(toVoid, 'DEL', key),
    removeIf: (key, expected) =>
      changeIf(key, expected, (current) => send(tookEffect, 'removeIfUnchanged', key, current)),
  };
}

const toVoid = () => {};
const textOrNone = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** Decoding replaces invalid bytes with this. Redis compares bytes, so the stored ones must be read and sent back. */
const replacementCharacter = '\uFFFD';

const expiry = (ttlMs?: number) => (ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]);

const optionalTtl = (ttlMs?: number) => (ttlMs === undefined ? [] : [wholeMs(ttlMs)]);

/** Redis accepts whole milliseconds, and at least 1. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

/** @param sendLease sends `leasePermits` for a bucket */
function createTokenBuckets(
  send: Send,
  sendLease: (
    convert: (result: unknown) => GrantedPermits,
    bucket: string,
    ...args: RedisCommand['args']
  ) => Promise<GrantedPermits>,
): SharedTokenBuckets {
  const reserve = <Value>(
    bucket: string,
    rate: BucketRate,
    maxWaitMs: number,
    convert: (waitMs: number, aheadMs: number) => Value,
  ): Promise<Value> => {
    const { perSecond, burst, longestAheadMs = '' } = rate;
    const convertAnswer = (answer: unknown) => {
      const [waitMs, aheadMs] = asList(answer);
      return convert(Number(waitMs), Number(aheadMs));
    };
    return send(convertAnswer, 'reservePermit', bucket, perSecond, burst, maxWaitMs, longestAheadMs);
  };
  return {
    isShared: true,
    reserve: (bucket, rate, maxWaitMs) =>
      reserve(bucket, rate, maxWaitMs, (waitMs) => (waitMs > maxWaitMs ? undefined : waitMs)),
    take: (bucket, rate) =>
      reserve(bucket, rate, 0, (waitMs, aheadMs) => takeResultOf(waitMs <= 0, aheadMs, rate)),
    lease(bucket, { perSecond, burst, longestAheadMs = '' }, { wanted, maxWaitMs, lease }) {
      const leaseArgs = lease ? [lease.id, lease.held, lease.returned, lease.immediate] : [];
      const args = [perSecond, burst, maxWaitMs, longestAheadMs, wanted, permitLeaseMs, ...leaseArgs];
      return sendLease(grantedPermits, bucket, ...args);
    },
    giveBack: (bucket, { perSecond }, after) => send(tookEffect, 'returnPermit', bucket, perSecond, after),
  };
}

function grantedPermits(answer: unknown): GrantedPermits {
  const [granted, waitMs, after] = asList(answer);
  return { granted: Number(granted), waitMs: Number(waitMs), after: String(after) };
}

const asList = (result: unknown): readonly unknown[] => (Array.isArray(result) ? result : []);
