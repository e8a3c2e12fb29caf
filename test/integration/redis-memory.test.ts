/** A Redis that runs out of memory must refuse writes, and never evict data. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { assertUnavailable, createWatchedState, openRedisState } from '../kit/redis-outage.ts';
import { until } from '../kit/within.ts';

describe('a full Redis', { skip: skipWithoutRedisServer }, () => {
  test('refuses operations that need memory, and still reads and removes values', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, { kind: 'single', url: redis.url });
    const { keyValues, tokenBuckets } = state;
    await keyValues.write('stored', 'value');
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');

    await assertUnavailable(() => keyValues.write('key', 'value'));
    await assertUnavailable(() => keyValues.writeIfAbsent('key', 'value', 1_000));
    await assertUnavailable(() => keyValues.replace('stored', 'value', 'next'));
    await assertUnavailable(async () => tokenBuckets.reserve('bucket', { perSecond: 1, burst: 1 }, 0));
    assert.equal(await keyValues.read('stored'), 'value');
    assert.equal(await keyValues.read('key'), undefined);
    await keyValues.remove('stored');
    assert.equal(await keyValues.read('stored'), undefined);

    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await keyValues.write('key', 'value');
    assert.deepEqual(state.problems, []);
  });

  // The errors of ioredis contain the refused command: a log of the cause would contain the payment.
  test('does not expose the refused value in the error', async (t) => {
    const redis = await startRedis(t, ['--maxmemory', '1', '--maxmemory-policy', 'noeviction']);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    await assert.rejects(keyValues.write('key', 'canary'), (error) => {
      assert.match(inspect(error), /OOM/);
      assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), /canary/);
      return true;
    });
  });
});

describe('a Redis that is nearly full', { skip: skipWithoutRedisServer }, () => {
  test('causes a warning until it has more memory, and is used as before', async (t) => {
    const redis = await startRedis(t, ['--maxmemory', '8mb', '--maxmemory-policy', 'noeviction']);
    const state = await openRedisState(t, { kind: 'single', url: redis.url });
    const usedMemory = async () =>
      Number(/^used_memory:(\d+)/m.exec(String(await redis.command('INFO', 'memory')))?.[1]);
    for (let number = 0; (await usedMemory()) < 0.82 * 8 * 1024 ** 2; number++)
      await state.keyValues.write(`filling ${number}`, 'x'.repeat(100_000));
    const isWarned = () => /Redis uses more than 80 % of maxmemory/.test(state.warnings().join());
    await until(10_000, 'the state warns', isWarned);
    await state.keyValues.write('key', 'x'.repeat(10_000));
    assert.deepEqual(state.problems, []);

    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb');
    await until(10_000, 'the warning ends', () => state.warnings().length === 0);
  });
});

describe('a Redis that may evict data', { skip: skipWithoutRedisServer }, () => {
  const evicting = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'];
  const refusal = /allkeys-lru.*set maxmemory-policy to noeviction, or maxmemory to 0/;

  test('is refused when the state is opened, with an error that says what to change', async (t) => {
    const redis = await startRedis(t, evicting);
    const state = createWatchedState(t, { kind: 'single', url: redis.url });
    await assert.rejects(state.open(), refusal);
    assert.deepEqual(state.problems, []);
    await assertUnavailable(() => state.keyValues.read('key'));
  });

  test('is reported as a problem if it becomes available after the state was opened', async (t) => {
    const redis = await startRedis(t, evicting);
    await redis.kill();
    const state = createWatchedState(t, { kind: 'single', url: redis.url });
    await state.open();
    await redis.restart();
    await until(5_000, 'the problem is reported', () => refusal.test(state.problem() ?? ''));
    assert.match(state.problems.at(-1) ?? '', refusal);
  });

  test('is reported as a problem from a change of its configuration until the change is undone', async (t) => {
    const redis = await startRedis(t);
    const state = await openRedisState(t, { kind: 'single', url: redis.url });
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb');
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    await until(5_000, 'the problem is reported', () => refusal.test(state.problem() ?? ''));
    await state.keyValues.write('key', 'value'); // still works: the gateway does not stop during operation

    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await until(5_000, 'the problem ends', () => state.problem() === undefined);
    assert.equal(state.problems.length, 2);
  });
});
