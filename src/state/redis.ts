/** State in Redis: one server, the master behind sentinels, or a cluster. */

import type { RedisSettings, StateSettings } from '../config/schema.ts';
import { stateUnavailable } from '../request/errors.ts';
import {
  type BucketRate,
  type ConfirmedBy,
  EpochMismatchError,
  type Fence,
  type KeyValues,
  leaseMs,
  type Sets,
  type SharedTokenBuckets,
  type State,
} from './ports.ts';
import { createCommandBatcher, createDeadline, type RedisCommand } from './redis-batch.ts';
import { createRedisClient } from './redis-client.ts';
import { createConfirmedWrites } from './redis-confirmation.ts';
import { createRedisMonitor } from './redis-monitor.ts';
import { createReplicaCounts } from './redis-replicas.ts';
import { takeResultOf } from './token-bucket.ts';

/** How long `open` waits for Redis to answer. Milliseconds. */
const openTimeoutMs = 1_000;

/**
 * Connects when `open` is called; pub/sub connects at the first subscription.
 *
 * @param prefix    of every key and every channel
 * @param onChange  called when a problem begins, ends or changes its kind
 * @param timeoutMs for the answer to a command (ADR 67); within a data centre Redis answers in 1 or 2 ms
 * @param confirm   which replicas must have a write that must survive a failover, and how long they may take
 * @param durability whether a Redis that may lose data is reported or refused
 */
export function createRedisState(
  settings: RedisSettings,
  prefix: string,
  onChange: (problem: string | undefined) => void = () => {},
  timeoutMs = 250,
  confirm: StateSettings['confirm'] = { replicas: 'all', timeout: 500 },
  durability: StateSettings['durability'] = 'report',
): State {
  const replicas = createReplicaCounts(confirm.replicas);
  const client = createRedisClient(settings, replicas, timeoutMs);
  const withDeadline = createDeadline(timeoutMs);
  const sendCommand = createCommandBatcher(client.executeBatch, withDeadline, client.maxBatchSize);
  const prefixed = (name: string) => `${prefix}${name}`;
  const send: Send = (name, key, ...args) => sendCommand({ name, key: prefixed(key), args });
  const confirmedWrites = createConfirmedWrites({
    masters: client,
    replicas,
    sendUnconfirmed: sendCommand,
    timeoutMs: confirm.timeout,
    answerMs: timeoutMs,
  });
  /** Fenced and confirmed writes record new payments, which a Redis that may lose them must not get. */
  const refuseIfUnsafe = () => {
    const reason = monitor.unsafeReason();
    if (reason) throw stateUnavailable(new Error(reason));
  };
  const sendConfirmed: Send = async (name, key, ...args) => {
    refuseIfUnsafe();
    return confirmedWrites.send({ name, key: prefixed(key), args });
  };
  const sendFenced: SendFenced = async (fence, confirmedBy, key, ...args) => {
    refuseIfUnsafe();
    const prefixedFence = { ...fence, key: prefixed(fence.key) };
    const command = { name: 'writeFenced', key: prefixed(key), args, fence: prefixedFence };
    const result = Number(await (confirmedBy ? confirmedWrites.send(command) : sendCommand(command)));
    if (result < 0) throw new EpochMismatchError();
    fence.sequence = Math.max(fence.sequence, result);
    return result > 0;
  };
  const monitor = createRedisMonitor(client, onChange, { timeoutMs, durability });
  client.onError(monitor.onError);
  client.onStatusChange(monitor.checkNow);
  const close = async () => {
    monitor.stop();
    client.close();
  };

  return {
    keyValues: createKeyValues(send, sendConfirmed, sendFenced, (key) =>
      withDeadline(() => client.getBuffer(prefixed(key))),
    ),
    sets: createSets(send, sendConfirmed),
    tokenBuckets: createTokenBuckets(send, (bucket, ...args) => {
      const key = prefixed(bucket);
      const otherKey = `${prefix}{${key}}:leases`; // the same slot of a cluster, and below the prefix
      return sendCommand({ name: 'leasePermits', key, otherKey, args });
    }),
    pubsub: {
      publish: async (channel, message) => void (await send('PUBLISH', channel, message)),
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
    warnings: () => [replicas.problem() ?? confirmedWrites.problem() ?? []].flat(),
    lossRisks: monitor.lossRisks,
    close,
    partitions: settings.kind === 'cluster' ? hashTags : [''],
    identity: () => withDeadline(client.identity),
    onDisconnect: client.onDisconnect,
  };
}

/** Enough that the keys spread evenly over the nodes of a cluster. */
const hashTags = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].map(
  (character) => `{${character}}`,
);

/** Sends a command on one key. */
type Send = (name: string, key: string, ...args: RedisCommand['args']) => Promise<unknown>;

/** Sends `writeFenced`. @returns whether the value was set @throws EpochMismatchError */
type SendFenced = (
  fence: Fence,
  confirmedBy: ConfirmedBy | undefined,
  key: string,
  ...args: RedisCommand['args']
) => Promise<boolean>;

/** @param readBytes reads a value as stored; `null` if there is none */
function createKeyValues(
  send: Send,
  sendConfirmed: Send,
  sendFenced: SendFenced,
  readBytes: (key: string) => Promise<Buffer | null>,
): KeyValues {
  /** The bytes whose decoded form is this text; `undefined` if the stored value is another one. */
  async function storedBytes(key: string, text: string): Promise<Buffer | undefined> {
    const stored = await readBytes(key);
    return stored?.toString() === text ? stored : undefined;
  }

  return {
    read: (key) => send('GET', key).then((value) => (typeof value === 'string' ? value : undefined)),
    write: async (key, value, ttlMs) => void (await send('SET', key, value, ...expiry(ttlMs))),
    async writeIfAbsent(key, value, ttlMs, fence) {
      if (fence) return sendFenced(fence, undefined, key, value, ttlOrNone(ttlMs));
      return (await send('SET', key, value, 'NX', ...expiry(ttlMs))) === 'OK';
    },
    async replace(key, expected, value, ttlMs, fence, confirmedBy) {
      const text = expected.toWellFormed();
      const current = text.includes(replacementCharacter) ? await storedBytes(key, text) : text;
      if (current === undefined) return false;
      if (fence) return sendFenced(fence, confirmedBy, key, value, ttlOrNone(ttlMs), current);
      const ttl = ttlMs === undefined ? [] : [wholeMs(ttlMs)];
      const sendThis = confirmedBy ? sendConfirmed : send;
      return (await sendThis('replaceIfUnchanged', key, current, value, ...ttl)) === 1;
    },
    remove: async (key) => void (await send('DEL', key)),
    async removeIf(key, expected) {
      const text = expected.toWellFormed();
      const current = text.includes(replacementCharacter) ? await storedBytes(key, text) : text;
      return current !== undefined && (await send('removeIfUnchanged', key, current)) === 1;
    },
  };
}

/** Decoding replaces invalid bytes with this. Redis compares bytes, so the stored ones must be read and sent back. */
const replacementCharacter = '\uFFFD';

const expiry = (ttlMs?: number) => (ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]);

/** For a script, whose arguments have fixed positions. */
const ttlOrNone = (ttlMs?: number) => (ttlMs === undefined ? '' : wholeMs(ttlMs));

/** Redis accepts whole milliseconds, and at least 1. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

function createSets(send: Send, sendConfirmed: Send): Sets {
  return {
    add: async (key, member, confirmedBy) =>
      void (await (confirmedBy ? sendConfirmed : send)('SADD', key, member)),
    remove: async (key, member) => void (await send('SREM', key, member)),
    members: async (key) => asList(await send('SMEMBERS', key)).map(String),
  };
}

/** @param sendLease sends `leasePermits` for a bucket */
function createTokenBuckets(
  send: Send,
  sendLease: (bucket: string, ...args: RedisCommand['args']) => Promise<unknown>,
): SharedTokenBuckets {
  async function reserve(bucket: string, rate: BucketRate, maxWaitMs: number): Promise<readonly number[]> {
    const { perSecond, burst, longestAheadMs = '' } = rate;
    const args = [perSecond, burst, maxWaitMs, longestAheadMs];
    return asList(await send('reservePermit', bucket, ...args)).map(Number);
  }
  return {
    isShared: true,
    async reserve(bucket, rate, maxWaitMs) {
      const [waitMs = 0] = await reserve(bucket, rate, maxWaitMs);
      return waitMs > maxWaitMs ? undefined : waitMs;
    },
    async take(bucket, rate) {
      const [waitMs = 0, aheadMs = 0] = await reserve(bucket, rate, 0);
      return takeResultOf(waitMs <= 0, aheadMs, rate);
    },
    async lease(bucket, { perSecond, burst, longestAheadMs = '' }, { wanted, maxWaitMs, lease }) {
      const leaseArgs = lease ? [leaseMs, lease.id, lease.held, lease.returned] : [leaseMs];
      const args = [perSecond, burst, maxWaitMs, longestAheadMs, wanted, ...leaseArgs];
      const [granted = 0, waitMs = 0] = asList(await sendLease(bucket, ...args)).map(Number);
      return { granted, waitMs };
    },
  };
}

const asList = (result: unknown): readonly unknown[] => (Array.isArray(result) ? result : []);
