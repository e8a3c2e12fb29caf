/** The bucket in Lua answers as the arithmetic in TypeScript does, number by number; what is asked together is one script. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { scriptWithClock } from '../../src/state/redis-scripts.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import {
  type RedisServer,
  sharedRedisUrl,
  skipWithoutRedis,
  skipWithoutRedisServer,
  startRedis,
} from '../kit/redis.ts';
import { openRedisState, timeToFail, timeToRecover } from '../kit/redis-outage.ts';
import { until } from '../kit/within.ts';
import { tokenBucketCases } from '../unit/state/token-bucket-cases.ts';

const life = lifeOfAllTests();
const url = skipWithoutRedis ? '' : await sharedRedisUrl(life);

describe('the bucket of Redis, on a clock that the test sets', { skip: skipWithoutRedis }, () => {
  const client = new Redis(url, { lazyConnect: true });
  life.after(() => client.disconnect());
  /** @param atMs on the test's clock */
  async function reservePermit(
    key: string,
    perSecond: number,
    burst: number,
    maxWaitMs: number,
    atMs: number,
  ) {
    const words = ['reservePermit', 3, perSecond, burst, maxWaitMs];
    const [answer] = (await client.eval(scriptWithClock(`return ${atMs}`), 1, key, ...words)) as [string[]];
    return answer;
  }

  for (const { name, requests } of tokenBucketCases) {
    test(name, async (t) => {
      const key = `penstock-test:bucket:${name}`;
      t.after(() => client.del(key));
      await client.del(key);
      for (const [atMs, { perSecond, burst }, maxWaitMs, waitMs] of requests) {
        const [wait] = await reservePermit(key, perSecond, burst, maxWaitMs, atMs);
        assert.equal(Number(wait) > maxWaitMs ? undefined : Number(wait), waitMs);
      }
    });
  }

  for (const garbage of ['', 'garbage', '{"a":1}', 'inf', '-inf', 'nan', '1e308']) {
    test(`"${garbage}" in its place counts as a full bucket, and is one no more after the first turn`, async (t) => {
      const key = `penstock-test:bucket:garbage:${garbage}`;
      t.after(() => client.del(key));
      await client.set(key, garbage);
      const waits = [];
      for (const _ of [1, 2]) waits.push(await reservePermit(key, 0.1, 1, 3_600_000, 1_000));
      assert.deepEqual(waits, [
        ['0', '10000'],
        ['10000', '20000'],
      ]);
    });
  }

  test('a bucket is forgotten when it is full again, and not before', async (t) => {
    const key = 'penstock-test:bucket:forgotten';
    t.after(() => client.del(key));
    await client.del(key);
    for (const lifeMs of [10_000, 20_000, 30_000]) {
      await reservePermit(key, 0.1, 2, 3_600_000, 0);
      const left = await client.pttl(key);
      assert.ok(left <= lifeMs && left > lifeMs - 2_000, `${left} ms are left`);
    }
  });
});

test('the bucket of Redis counts milliseconds of its own clock', {
  skip: skipWithoutRedisServer,
}, async (t) => {
  const redis = await startRedis(t);
  const { tokenBuckets } = await openRedisState(t, { kind: 'single', url: redis.url });
  const [beforeS = 0] = [await redis.command('TIME')].flat().map(Number);
  await tokenBuckets.reserve('bucket', { perSecond: 0.001, burst: 1 }, 0);
  const [key = ''] = [await redis.command('KEYS', '*')].flat().map(String);
  const aheadMs = Number(await redis.command('GET', key)) - beforeS * 1_000;
  assert.ok(aheadMs >= 1_000_000 && aheadMs < 1_010_000, `${aheadMs} ms ahead`);
});

describe('what is asked of Redis in one breath', { skip: skipWithoutRedisServer }, () => {
  test('is carried out although one command among it makes no sense', async (t) => {
    const redis = await startRedis(t);
    const { keyValues, sets } = await openRedisState(t, { kind: 'single', url: redis.url });
    await keyValues.write('value', 'before');
    const [[connection = ''], scripts] = [await connectionsTo(redis), await scriptsOf(redis)];
    const outcomes = await Promise.allSettled([
      keyValues.writeIfAbsent('other', 'text'),
      sets.add('value', 'member'),
      keyValues.replace('value', 'before', 'after'),
      keyValues.read('value'),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.code)),
      [true, 'STATE_UNAVAILABLE', true, 'after'],
    );
    assert.equal(await scriptsOf(redis), scripts + 1);
    assert.ok((await connectionsTo(redis)).includes(connection), 'nobody hangs up for that');
  });

  test('does not make little late by much that is read with it', async (t) => {
    const redis = await startRedis(t);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    const large = 'x'.repeat(2 * 1024 * 1024);
    await keyValues.write('large', large);
    const [nothing, ...read] = await Promise.all([
      keyValues.read('none'),
      ...Array.from({ length: 32 }, () => keyValues.read('large')),
      keyValues.read('large'),
    ]);
    assert.equal(nothing, undefined);
    assert.ok(read.every((text) => text === large));
    assert.equal(read.length, 33);
  });

  test('is refused by a master that has become a replica, which is left at once for whoever is the master', async (t) => {
    const redis = await startRedis(t);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    await keyValues.write('key', 'before');
    const [before = ''] = await connectionsTo(redis);
    await redis.command('REPLICAOF', '127.0.0.1', new URL(redis.url).port);
    const read = keyValues.read('key'); // which a replica answers
    await timeToFail(() => keyValues.write('key', 'meanwhile'));
    assert.equal(await read, 'before');
    await until(5_000, 'it comes anew', async () => {
      const now = await connectionsTo(redis);
      return now.length === 1 && now[0] !== before;
    });
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await timeToRecover(5_000, () => keyValues.write('key', 'after'));
    assert.equal(await keyValues.read('key'), 'after');
  });
});

/** How many scripts it was asked for so far. */
async function scriptsOf(redis: RedisServer): Promise<number> {
  const stats = String(await redis.command('INFO', 'commandstats'));
  const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),/g)].map(([, count]) => Number(count));
  return calls.reduce((sum, count) => sum + count, 0);
}

/** The ids of those that stay. */
async function connectionsTo(redis: RedisServer): Promise<readonly string[]> {
  const list = String(await redis.command('CLIENT', 'LIST', 'TYPE', 'normal'));
  return list
    .split('\n')
    .filter((line) => line.startsWith('id=') && !line.includes('cmd=client'))
    .map((line) => /id=(\d+)/.exec(line)?.[1] ?? '');
}
