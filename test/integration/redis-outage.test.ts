/** During an outage of Redis every operation fails at once. The state recovers by itself, and no operation takes effect later. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import {
  assertUnavailable,
  assertUnavailableFor,
  createWatchedState,
  openRedisState,
  untilAvailable,
  type WatchedState,
} from '../kit/redis-outage.ts';
import { until } from '../kit/within.ts';

/** As in production. */
const timeoutMs = 50;

const settingsOf = ({ url }: RedisServer) => ({ kind: 'single' as const, url });

const operations: Readonly<Record<string, (state: WatchedState) => Promise<unknown>>> = {
  read: ({ keyValues }) => keyValues.read('key'),
  write: ({ keyValues }) => keyValues.write('key', 'value', 1_000),
  writeIfAbsent: ({ keyValues }) => keyValues.writeIfAbsent('key', 'value'),
  replace: ({ keyValues }) => keyValues.replace('key', 'value', 'next'),
  'replace of invalid UTF-8': ({ keyValues }) => keyValues.replace('key', '\uFFFD', 'next'),
  remove: ({ keyValues }) => keyValues.remove('key'),
  reserve: async ({ tokenBuckets }) => tokenBuckets.reserve('bucket', { perSecond: 1_000, burst: 1 }, 60_000),
  publish: ({ pubsub }) => pubsub.publish('channel', 'message'),
};

async function assertAllUnavailable(state: WatchedState): Promise<void> {
  for (const operation of Object.values(operations)) await assertUnavailable(() => operation(state));
}

describe('the Redis state during an outage', { skip: skipWithoutRedisServer, concurrency: 3 }, () => {
  test('refuses every operation while Redis is down, and recovers after its restart', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), timeoutMs);
    await redis.kill();
    await assertAllUnavailable(state);
    await assertUnavailableFor(1_500, () => state.keyValues.read('key'));
    await until(5_000, 'the problem is reported', () => /ECONNREFUSED/.test(state.problem() ?? ''));

    await redis.restart();
    await untilAvailable(5_000, () => state.keyValues.read('key'));
    for (const operation of Object.values(operations)) await operation(state);
    await until(5_000, 'the problem ends', () => state.problem() === undefined);
  });

  test('refuses every operation while Redis is frozen, and recovers when it continues', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), timeoutMs);
    redis.freeze();
    await assertAllUnavailable(state);
    await until(5_000, 'the problem is reported', () => state.problem() !== undefined);
    await assertUnavailableFor(1_500, () => state.keyValues.read('key'));

    redis.thaw();
    await untilAvailable(5_000, () => state.keyValues.read('key'));
  });

  test('reports a frozen Redis although no operation uses it', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), timeoutMs);
    redis.freeze();
    await until(5_000, 'the problem is reported', () => state.problem() !== undefined);
  });

  test('refuses operations while a slow script blocks Redis, and recovers afterwards', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), timeoutMs);
    const busy = "local t = redis.call('TIME')[1] while redis.call('TIME')[1] - t < 3 do end";
    const scriptEnded = redis.command('EVAL', busy, '0');
    await until(5_000, 'Redis is blocked', async () => {
      const outcome = await state.keyValues.read('key').catch(() => 'blocked');
      return outcome === 'blocked';
    });
    await assertUnavailableFor(500, () => state.keyValues.read('key'));
    await scriptEnded;
    await untilAvailable(5_000, () => state.keyValues.read('key'));
  });

  test('opens although Redis is down, and works as soon as Redis starts', async (t) => {
    const redis = await startRedis(t);
    await redis.kill();
    const state = createWatchedState(t, settingsOf(redis), timeoutMs);
    await state.open();
    assert.match(state.problem() ?? '', /Redis unavailable.*ECONNREFUSED/);
    await assertUnavailableFor(200, () => state.keyValues.read('key'));

    await redis.restart();
    await untilAvailable(5_000, () => state.keyValues.read('key'));
    await until(5_000, 'the problem ends', () => state.problem() === undefined);
    assert.equal(state.problems.length, 2);
  });

  test('reports each problem once, and prints nothing', async (t) => {
    const printed = ['error', 'warn'].map((name) =>
      t.mock.method(console, name as 'error' | 'warn', () => {}),
    );
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), timeoutMs);
    for (const round of [1, 2]) {
      await redis.kill();
      await assertUnavailableFor(700, () => state.keyValues.read('key'));
      await redis.restart();
      await until(5_000, 'the problem ends', () => state.problems.length === 2 * round);
    }
    assert.deepEqual(
      state.problems.map((problem) => problem !== undefined),
      [true, false, true, false],
    );
    for (const { mock } of printed) assert.equal(mock.callCount(), 0);
  });
});

describe('the Redis state after an outage', { skip: skipWithoutRedisServer, concurrency: 4 }, () => {
  test('does not execute operations that were refused during the outage', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), timeoutMs);
    redis.freeze();
    const inFlight = Promise.allSettled(Object.values(operations).map((operation) => operation(state)));
    await redis.kill();
    await inFlight;
    for (let round = 0; round < 20; round++) await assertAllUnavailable(state);

    await redis.restart();
    await untilAvailable(5_000, () => state.keyValues.read('key'));
    await until(5_000, 'the problem ends', () => state.problem() === undefined);
    assert.equal(await redis.command('DBSIZE'), 0);
    const stats = String(await redis.command('INFO', 'commandstats'));
    assert.match(stats, /cmdstat_get:calls=1,/); // the read that succeeded
    assert.doesNotMatch(stats, /cmdstat_(set|del|sadd|srem|smembers|publish|time):/);
  });

  test('loads its script again if Redis has lost it', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis), 2_000);
    await operations.reserve?.(state);
    await redis.command('SCRIPT', 'FLUSH');
    await operations.reserve?.(state);
    await operations.replace?.(state);
  });

  for (const [what, stop, start] of [
    ['was restarted', 'kill', 'restart'],
    ['continues after a freeze', 'freeze', 'thaw'],
  ] as const) {
    test(`receives pub/sub messages again when Redis ${what}`, async (t) => {
      const redis = await startRedis(t);
      const state = await openRedisState(t, settingsOf(redis), timeoutMs);
      const received = new Set<string>();
      const untilReceived = (channel: string, message: string) =>
        until(5_000, `${message} is received`, async () => {
          await state.pubsub.publish(channel, message).catch(() => {});
          return received.has(message);
        });
      state.pubsub.subscribe('channel', (message) => received.add(message));
      await untilReceived('channel', 'before');
      await redis[stop]();
      await assertUnavailableFor(1_500, () => state.keyValues.read('key'));
      state.pubsub.subscribe('subscribed during the outage', (message) => received.add(message));
      await redis[start]();
      await untilReceived('channel', 'after');
      await untilReceived('subscribed during the outage', 'on the new channel');
    });
  }
});
