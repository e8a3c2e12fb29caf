/** An outage of Redis is an error at once, ends by itself, and leaves nothing behind. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import {
  createWatchedState,
  openRedisState,
  timesToFail,
  timeToFail,
  timeToRecover,
  type WatchedState,
} from '../kit/redis-outage.ts';
import { until } from '../kit/within.ts';

/** 50 ms are promised; the rest is for the machine that runs the tests. */
const failureMs = 150;
/** As promised. */
const recoveryMs = 1_000;

const settingsOf = ({ url }: RedisServer) => ({ kind: 'single' as const, url });
const nearlyAll = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.95)] ?? 0;

function failFast(times: readonly number[]): void {
  assert.ok(nearlyAll(times) < failureMs, `it took ${nearlyAll(times)} ms to say so`);
}

/** Every way to use a state. */
const uses: Readonly<Record<string, (state: WatchedState) => Promise<unknown>>> = {
  read: ({ keyValues }) => keyValues.read('key'),
  write: ({ keyValues }) => keyValues.write('key', 'value', 1_000),
  'write if absent': ({ keyValues }) => keyValues.writeIfAbsent('key', 'value'),
  replace: ({ keyValues }) => keyValues.replace('key', 'value', 'next'),
  'replace what is no text': ({ keyValues }) => keyValues.replace('key', '\uFFFD', 'next'),
  remove: ({ keyValues }) => keyValues.remove('key'),
  reserve: ({ tokenBuckets }) => tokenBuckets.reserve('bucket', { perSecond: 1_000, burst: 1 }, 60_000),
  publish: ({ pubsub }) => pubsub.publish('channel', 'message'),
};

describe('while Redis is out of reach', { skip: skipWithoutRedisServer, concurrency: 3 }, () => {
  test('killed: everything fails at once, and works within a second after its return', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    await redis.kill();
    for (const use of Object.values(uses)) failFast([await timeToFail(() => use(state))]);
    failFast(await timesToFail(1_500, () => state.keyValues.read('key')));
    await until(1_000, 'it says so', () => /ECONNREFUSED/.test(state.problem() ?? ''));

    await redis.restart();
    const recovery = await timeToRecover(5_000, () => state.keyValues.read('key'));
    assert.ok(recovery < recoveryMs, `it took ${recovery} ms`);
    for (const use of Object.values(uses)) await use(state);
    await until(1_000, 'it says so', () => state.problem() === undefined);
    t.diagnostic(`killed: back ${Math.round(recovery)} ms after the restart`);
  });

  test('frozen: everything fails within 50 ms, and works within two seconds after its return', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    redis.freeze();
    for (const use of Object.values(uses)) failFast([await timeToFail(() => use(state))]);
    await until(1_500, 'it is noticed', () => state.problem() !== undefined);
    const times = await timesToFail(1_500, () => state.keyValues.read('key'));
    failFast(times);

    redis.thaw();
    const recovery = await timeToRecover(5_000, () => state.keyValues.read('key'));
    assert.ok(recovery < 2_000, `it took ${recovery} ms`);
    t.diagnostic(`frozen: ${times.length} errors, the slowest after ${Math.round(times.at(-1) ?? 0)} ms`);
    t.diagnostic(`frozen: back ${Math.round(recovery)} ms after it went on`);
  });

  test('frozen while nobody asks: it is noticed within about a second', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    redis.freeze();
    await until(1_500, 'it is noticed', () => state.problem() !== undefined);
  });

  test('blocked by a slow script: everything fails within 50 ms until it is over', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    const busy = "local t = redis.call('TIME')[1] while redis.call('TIME')[1] - t < 2 do end";
    const over = redis.command('EVAL', busy, '0');
    await until(
      1_000,
      'it is blocked',
      async () => (await state.keyValues.read('key').catch(() => 'no')) === 'no',
    );
    failFast(await timesToFail(500, () => state.keyValues.read('key')));
    await over;
    const recovery = await timeToRecover(5_000, () => state.keyValues.read('key'));
    assert.ok(recovery < recoveryMs, `it took ${recovery} ms`);
  });

  test('down at the start: open comes back within about a second, and it works when Redis comes', async (t) => {
    const redis = await startRedis(t);
    await redis.kill();
    const state = createWatchedState(t, settingsOf(redis));
    const start = performance.now();
    await state.open();
    assert.ok(performance.now() - start < 2_000);
    assert.match(state.problem() ?? '', /cannot be reached.*ECONNREFUSED/);
    failFast(await timesToFail(200, () => state.keyValues.read('key')));

    await redis.restart();
    await timeToRecover(recoveryMs, () => state.keyValues.read('key'));
    await until(1_000, 'it says so', () => state.problem() === undefined);
    assert.equal(state.problems.length, 2);
  });

  test('every change is told once, and nothing is printed', async (t) => {
    const printed = ['error', 'warn'].map((name) =>
      t.mock.method(console, name as 'error' | 'warn', () => {}),
    );
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    for (const round of [1, 2]) {
      await redis.kill();
      await timesToFail(700, () => state.keyValues.read('key'));
      await redis.restart();
      await until(3_000, 'it is well again', () => state.problems.length === 2 * round);
    }
    assert.deepEqual(
      state.problems.map((trouble) => trouble !== undefined),
      [true, false, true, false],
    );
    for (const { mock } of printed) assert.equal(mock.callCount(), 0);
  });
});

describe('after an outage of Redis', { skip: skipWithoutRedisServer, concurrency: 4 }, () => {
  test('nothing that was asked meanwhile is done', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    redis.freeze();
    const inFlight = Promise.allSettled(Object.values(uses).map((use) => use(state)));
    await redis.kill();
    await inFlight;
    for (let round = 0; round < 20; round++) {
      for (const use of Object.values(uses)) await timeToFail(() => use(state));
    }

    await redis.restart();
    await timeToRecover(recoveryMs, () => state.keyValues.read('key'));
    await until(1_000, 'it says so', () => state.problem() === undefined);
    assert.equal(await redis.command('DBSIZE'), 0);
    const done = String(await redis.command('INFO', 'commandstats'));
    assert.match(done, /cmdstat_get:calls=1,/); // the last question
    assert.doesNotMatch(done, /cmdstat_(set|del|sadd|srem|smembers|publish|time):/);
  });

  test('a bucket and a replacement work although Redis has lost their scripts', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, settingsOf(redis));
    await uses.reserve?.(state);
    await redis.command('SCRIPT', 'FLUSH');
    await uses.reserve?.(state);
    await uses.replace?.(state);
  });

  for (const [how, away, back] of [
    ['killed', 'kill', 'restart'],
    ['frozen', 'freeze', 'thaw'],
  ] as const) {
    test(`who listens hears again when Redis was ${how}`, async (t) => {
      const redis = await startRedis(t);
      const state = await openRedisState(t, settingsOf(redis));
      const heard = new Set<string>();
      const hears = (message: string) =>
        until(4_000, `${message} is heard`, async () => {
          await state.pubsub.publish('channel', message).catch(() => {});
          return heard.has(message);
        });
      state.pubsub.subscribe('channel', (message) => heard.add(message));
      await hears('before');
      await redis[away]();
      await timesToFail(1_500, () => state.keyValues.read('key'));
      state.pubsub.subscribe('asked for meanwhile', (message) => heard.add(message));
      await redis[back]();
      await hears('after');
      await until(4_000, 'the other channel is heard', async () => {
        await state.pubsub.publish('asked for meanwhile', 'this too').catch(() => {});
        return heard.has('this too');
      });
    });
  }
});
