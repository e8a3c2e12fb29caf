/** State in Redis: one server, the master behind sentinels, or a cluster. */

import type { StateSettings } from '../config/schema.ts';
import { stateUnavailable } from '../request/errors.ts';
import {
  type BucketRate,
  type ConfirmedBy,
  EpochMismatchError,
  type Fence,
  type GrantedPermits,
  type Journals,
  type KeyValues,
  maxJournalTexts,
  permitLeaseMs,
  type ReplaceConditions,
  type Sets,
  type SharedTokenBuckets,
  type State,
} from './ports.ts';
import {
  createCommandBatcher,
  createDeadline,
  notSent,
  type RedisCommand,
  type SendCommand,
  tookEffect,
} from './redis-batch.ts';
import { createRedisClient } from './redis-client.ts';
import { createConfirmedWrites } from './redis-confirmation.ts';
import { createRedisMonitor, nearlyFull } from './redis-monitor.ts';
import type { RedisConnectionSettings } from './redis-options.ts';
import { createReplicaCounts } from './redis-replicas.ts';
import { createRedisRequestLog } from './redis-request-log.ts';
import { createRedisSchedules } from './redis-schedules.ts';
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
  settings: RedisConnectionSettings,
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
  const send: Send = (convert, name, key, ...args) =>
    sendCommand({ name, key: prefixed(key), args }, convert);
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
  const ifSafe =
    (sendSafely: SendCommand): SendCommand =>
    (command, convert) => {
      try {
        refuseIfUnsafe();
      } catch (refusal) {
        return Promise.reject(refusal);
      }
      return sendSafely(command, convert);
    };
  const sendConfirmedIfSafe = ifSafe(confirmedWrites.send);
  const sendUnconfirmedIfSafe = ifSafe(sendCommand);
  const sendConfirmed: Send = (convert, name, key, ...args) =>
    sendConfirmedIfSafe({ name, key: prefixed(key), args }, convert);
  const sendFenced: SendFenced = (fence, confirmedBy, key, ...args) => {
    const prefixedFence = { ...fence, key: prefixed(fence.key) };
    const command = { name: 'writeFenced', key: prefixed(key), args, fence: prefixedFence };
    const sendThis = confirmedBy ? sendConfirmedIfSafe : sendUnconfirmedIfSafe;
    return sendThis(command, (answer) => {
      const result = Number(answer);
      if (result < 0) throw new EpochMismatchError();
      fence.sequence = Math.max(fence.sequence, result);
      return result > 0;
    });
  };
  const monitor = createRedisMonitor(client, onChange, { timeoutMs, durability });
  client.onError(monitor.onError);
  client.onStatusChange(monitor.checkNow);
  const close = async () => {
    monitor.stop();
    client.close();
  };

  const requestLog = createRedisRequestLog({ prefix, sendCommand, reader: client.reader, withDeadline });

  return {
    keyValues: createKeyValues({
      send,
      sendConfirmed,
      sendFenced,
      sendCommand,
      commandOf: (name, key, ...args) => ({ name, key: prefixed(key), args }),
      readBytes: (key) => withDeadline(() => client.getBuffer(prefixed(key))),
    }),
    sets: createSets(send, sendConfirmed),
    journals: createJournals(send),
    schedules: createRedisSchedules(
      prefix,
      settings.kind === 'cluster' ? scheduleTags : ['{0}'],
      sendCommand,
    ),
    tokenBuckets: createTokenBuckets(send, (convert, bucket, ...args) => {
      const key = prefixed(bucket);
      const otherKeys = [`${prefix}{${key}}:leases`]; // the same slot of a cluster, and below the prefix
      return sendCommand({ name: 'leasePermits', key, otherKeys, args }, convert);
    }),
    pubsub: {
      publish: (channel, message) => send(toVoid, 'PUBLISH', channel, message),
      subscribe: (channel, listener) => client.subscribe(prefixed(channel), listener),
    },
    requestLog: {
      ...requestLog,
      // Records of requests must not take the memory that payments need.
      append: async (...args) => {
        if (monitor.isNearlyFull()) throw stateUnavailable(new Error(nearlyFull));
        return requestLog.append(...args);
      },
    },
    async open() {
      client.connect();
      const health = await monitor.start(openTimeoutMs);
      if (health.kind !== 'unsafe') return;
      await close();
      throw new Error(health.problem);
    },
    problem: monitor.problem,
    warnings: () => [
      ...[replicas.problem() ?? confirmedWrites.problem() ?? []].flat(),
      ...(monitor.isNearlyFull() ? [nearlyFull] : []),
    ],
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

/** Few, because each instance looks for due records in each part of each queue. */
const scheduleTags = ['{0}', '{1}', '{2}', '{3}', '{4}', '{5}', '{6}', '{7}'] as const;

/** Sends a command on one key, and converts its result. */
type Send = <Value>(
  convert: (result: unknown) => Value,
  name: string,
  key: string,
  ...args: RedisCommand['args']
) => Promise<Value>;

/** Sends `writeFenced`. @returns whether the value was set @throws EpochMismatchError */
type SendFenced = (
  fence: Fence,
  confirmedBy: ConfirmedBy | undefined,
  key: string,
  ...args: RedisCommand['args']
) => Promise<boolean>;

interface KeyValueCommands {
  readonly send: Send;
  readonly sendConfirmed: Send;
  readonly sendFenced: SendFenced;
  readonly sendCommand: SendCommand;
  /** Creates a command on a prefixed key. */
  readonly commandOf: (name: string, key: string, ...args: RedisCommand['args']) => RedisCommand;
  /** Reads a value as stored; `null` if there is none. */
  readonly readBytes: (key: string) => Promise<Buffer | null>;
}

/** The result of `writeIfAbsent`, with its command for those that depend on it. (A WeakMap would keep them alive: ADR 62.) */
interface SentWrite extends Promise<boolean> {
  command?: RedisCommand;
}

function createKeyValues({
  send,
  sendConfirmed,
  sendFenced,
  sendCommand,
  commandOf,
  readBytes,
}: KeyValueCommands): KeyValues {
  /** For a stored value that is not valid UTF-8: reads its bytes, so that `change` can compare them in place of the text. */
  async function ifStored(
    key: string,
    text: string,
    change: (bytes: Buffer) => Promise<boolean>,
  ): Promise<boolean> {
    const stored = await readBytes(key);
    return stored?.toString() === text && change(stored);
  }

  function replaceStored(
    key: string,
    current: string | Buffer,
    value: string,
    ttlMs: number | undefined,
    { fence, confirmedBy }: ReplaceConditions,
  ): Promise<boolean> {
    if (fence) return sendFenced(fence, confirmedBy, key, value, ttlOrNone(ttlMs), current);
    const sendThis = confirmedBy ? sendConfirmed : send;
    return sendThis(tookEffect, 'replaceIfUnchanged', key, current, value, ...optionalTtl(ttlMs));
  }

  /** Replaces a value in the same batch as the write that it depends on, or after that write. */
  function replaceAfter(
    after: SentWrite,
    key: string,
    current: string,
    value: string,
    ttlMs: number | undefined,
  ): Promise<boolean> {
    const command = commandOf('replaceIfUnchanged', key, current, value, ...optionalTtl(ttlMs));
    const dependent = { ...command, after: after.command };
    const sendLater = () => after.then((isSet) => isSet && sendCommand(command, tookEffect));
    if (!dependent.after) return sendLater();
    return sendCommand(dependent, (result) => (result === notSent ? sendLater() : tookEffect(result)));
  }

  const keyValues: KeyValues = {
    read: (key) => send(textOrNone, 'GET', key),
    write: (key, value, ttlMs) => send(toVoid, 'SET', key, value, ...expiry(ttlMs)),
    writeIfAbsent(key, value, ttlMs, fence) {
      if (fence) return sendFenced(fence, undefined, key, value, ttlOrNone(ttlMs));
      const command = commandOf('SET', key, value, 'NX', ...expiry(ttlMs));
      const isSet: SentWrite = sendCommand(command, tookEffect);
      isSet.command = command;
      return isSet;
    },
    replace(key, expected, value, ttlMs, conditions = {}) {
      const { fence, confirmedBy, after } = conditions;
      const text = expected.toWellFormed();
      const isPlain = !text.includes(replacementCharacter);
      if (after && isPlain && !fence && !confirmedBy) return replaceAfter(after, key, text, value, ttlMs);
      if (after)
        return after.then(
          (isSet) => isSet && keyValues.replace(key, text, value, ttlMs, { fence, confirmedBy }),
        );
      const replaceThis = (current: string | Buffer) => replaceStored(key, current, value, ttlMs, conditions);
      return isPlain ? replaceThis(text) : ifStored(key, text, replaceThis);
    },
    remove: (key) => send(toVoid, 'DEL', key),
    removeIf(key, expected) {
      const text = expected.toWellFormed();
      const removeThis = (current: string | Buffer) => send(tookEffect, 'removeIfUnchanged', key, current);
      return text.includes(replacementCharacter) ? ifStored(key, text, removeThis) : removeThis(text);
    },
  };
  return keyValues;
}

const toVoid = () => {};
const textOrNone = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** Decoding replaces invalid bytes with this. Redis compares bytes, so the stored ones must be read and sent back. */
const replacementCharacter = '\uFFFD';

const expiry = (ttlMs?: number) => (ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]);

const optionalTtl = (ttlMs?: number) => (ttlMs === undefined ? [] : [wholeMs(ttlMs)]);

/** For a script, whose arguments have fixed positions. */
const ttlOrNone = (ttlMs?: number) => (ttlMs === undefined ? '' : wholeMs(ttlMs));

/** Redis accepts whole milliseconds, and at least 1. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

function createSets(send: Send, sendConfirmed: Send): Sets {
  return {
    add: (key, member, confirmedBy) => (confirmedBy ? sendConfirmed : send)(toVoid, 'SADD', key, member),
    remove: (key, member) => send(toVoid, 'SREM', key, member),
    members: (key) => send(textsIn, 'SMEMBERS', key),
  };
}

function createJournals(send: Send): Journals {
  return {
    append: (key, texts, ttlMs) =>
      texts.length === 0
        ? Promise.resolve()
        : send(toVoid, 'appendToJournal', key, wholeMs(ttlMs), maxJournalTexts, ...texts),
    read: (key) => send(textsIn, 'LRANGE', key, 0, -1),
  };
}

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

const textsIn = (result: unknown) => asList(result).map(String);

function grantedPermits(answer: unknown): GrantedPermits {
  const [granted, waitMs, after] = asList(answer);
  return { granted: Number(granted), waitMs: Number(waitMs), after: String(after) };
}

const asList = (result: unknown): readonly unknown[] => (Array.isArray(result) ? result : []);
