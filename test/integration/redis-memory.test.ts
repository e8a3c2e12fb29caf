/** A Redis that runs out of memory must refuse, and never forget what it was told. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { createWatchedState, openRedisState, timeToFail } from '../kit/redis-outage.ts';
import { until } from '../kit/within.ts';

describe('a Redis that is full', { skip: skipWithoutRedisServer }, () => {
  test('refuses what takes room, and still reads and removes', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, { kind: 'single', url: redis.url });
    const { keyValues, tokenBuckets } = state;
    await keyValues.write('kept', 'value');
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');

    await timeToFail(() => keyValues.write('key', 'value'));
    await timeToFail(() => keyValues.writeIfAbsent('key', 'value', 1_000));
    await timeToFail(() => keyValues.replace('kept', 'value', 'next'));
    await timeToFail(() => tokenBuckets.reserve('bucket', { perSecond: 1, burst: 1 }, 0));
    assert.equal(await keyValues.read('kept'), 'value');
    assert.equal(await keyValues.read('key'), undefined);
    await keyValues.remove('kept');
    assert.equal(await keyValues.read('kept'), undefined);

    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await keyValues.write('key', 'value');
    assert.deepEqual(state.problems, []);
  });

  // Redis' error carries the command that it refused. Whoever logs the cause would log the payment.
  test('does not have the refused value in the error', async (t) => {
    const redis = await startRedis(t, ['--maxmemory', '1', '--maxmemory-policy', 'noeviction']);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    await assert.rejects(keyValues.write('key', 'canary'), (error) => {
      assert.match(inspect(error), /OOM/);
      assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), /canary/);
      return true;
    });
  });
});

describe('a Redis that may evict', { skip: skipWithoutRedisServer }, () => {
  const evicting = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'];
  const refusal = /allkeys-lru.*set maxmemory-policy to noeviction, or maxmemory to 0/;

  test('is refused at the start, with what to change', async (t) => {
    const redis = await startRedis(t, evicting);
    const state = createWatchedState(t, { kind: 'single', url: redis.url });
    await assert.rejects(state.open(), refusal);
    assert.deepEqual(state.problems, []);
    await timeToFail(() => state.keyValues.read('key'));
  });

  test('is in trouble when it comes after the start', async (t) => {
    const redis = await startRedis(t, evicting);
    await redis.kill();
    const state = createWatchedState(t, { kind: 'single', url: redis.url });
    await state.open();
    await redis.restart();
    await until(3_000, 'it is noticed', () => refusal.test(state.problem() ?? ''));
    assert.match(state.problems.at(-1) ?? '', refusal);
  });

  test('is in trouble from when it was changed until it is changed back', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, { kind: 'single', url: redis.url });
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb');
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    await until(3_000, 'it is noticed', () => refusal.test(state.problem() ?? ''));
    await state.keyValues.write('key', 'value'); // it works on: stopping would help nobody

    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await until(3_000, 'it is noticed', () => state.problem() === undefined);
    assert.equal(state.problems.length, 2);
  });
});
