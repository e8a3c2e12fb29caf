/** The Lua script: its token bucket equals the arithmetic in TypeScript, and a batch of commands is one script. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { seededRandom } from '../kit/random.ts';
import {
  type RedisServer,
  sharedRedisUrl,
  skipWithoutRedis,
  skipWithoutRedisServer,
  startRedis,
} from '../kit/redis.ts';
import { assertUnavailable, openRedisState, untilAvailable } from '../kit/redis-outage.ts';
import { createScriptedBuckets, leasesOf } from '../kit/scripted-buckets.ts';
import { createSharedBuckets } from '../kit/shared-buckets.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';
import { tokenBucketCases } from '../unit/state/token-bucket-cases.ts';

const life = scopeOfAllTests();
const url = skipWithoutRedis ? '' : await sharedRedisUrl(life);

describe('the token bucket script of Redis, on a manual clock', { skip: skipWithoutRedis }, () => {
  const client = new Redis(url, { lazyConnect: true });
  life.after(() => client.disconnect());
  const manual = { nowMs: 0 };
  const buckets = createScriptedBuckets(client, () => manual.nowMs);

  for (const { name, requests } of tokenBucketCases) {
    test(name, async (t) => {
      const key = `penstock-test:bucket:${name}`;
      t.after(() => client.del(key));
      await client.del(key);
      for (const [atMs, rate, maxWaitMs, waitMs] of requests) {
        manual.nowMs = atMs;
        assert.equal(await buckets.reserve(key, rate, maxWaitMs), waitMs);
      }
    });
  }

  test('grants the same leases as the simulated buckets of the unit tests, and takes back the same permits', async (t) => {
    const key = 'penstock-test:bucket:leases';
    const remove = () => client.del(key, leasesOf(key));
    t.after(remove);
    await remove();
    const random = seededRandom(5);
    manual.nowMs = 1_000_000;
    const simulated = createSharedBuckets(() => manual.nowMs);
    const held = [0, 0, 0];
    const grants = [];
    const returns = [];
    for (let step = 0; step < 600; step++) {
      manual.nowMs += Math.floor(random() * (random() < 0.1 ? 1_500 : 60));
      const index = Math.floor(random() * 3);
      const unused = Math.floor(random() * ((held[index] ?? 0) + 1));
      const returned = random() < 0.3 ? Math.floor(random() * (unused + 1)) : 0;
      const isLease = random() < 0.8;
      const immediate = Math.floor(random() * 3);
      const request = {
        wanted: Math.floor(random() * 8),
        maxWaitMs: random() < 0.3 ? 200 : 0,
        lease: isLease ? { id: `lease ${index}`, held: unused - returned, returned, immediate } : undefined,
      };
      const rate = { perSecond: 32, burst: random() < 0.5 ? 8 : 16, longestAheadMs: 60_000 };
      const expected = await simulated.lease(key, rate, request);
      const actual = await buckets.lease(key, rate, request);
      assert.deepEqual(
        { ...actual, after: Number(actual.after) },
        { ...expected, after: Number(expected.after) },
      );
      grants.push(expected.granted);
      const leased = expected.waitMs === 0 ? Math.max(0, expected.granted - immediate) : 0;
      if (isLease) held[index] = unused - returned + leased;
      if (random() < 0.5) continue;
      const after = random() < 0.3 ? ['1', '1'] : [actual.after, expected.after];
      const isReturned = await buckets.giveBack(key, rate, after[0] ?? '');
      assert.equal(isReturned, await simulated.giveBack(key, rate, after[1] ?? ''), `step ${step}`);
      returns.push(isReturned);
    }
    assert.ok(new Set(grants).size > 4, 'the grants differ');
    assert.equal(new Set(returns).size, 2, 'some permits are not taken back');
  });

  for (const garbage of ['', 'garbage', '{"a":1}', 'inf', '-inf', 'nan', '1e308']) {
    test(`an invalid arrival time "${garbage}" counts as a full bucket, and the first permit replaces it`, async (t) => {
      const key = `penstock-test:bucket:garbage:${garbage}`;
      t.after(() => client.del(key));
      await client.set(key, garbage);
      manual.nowMs = 1_000;
      const waits = [];
      for (const _ of [1, 2])
        waits.push(await buckets.reserveExactly(key, { perSecond: 0.1, burst: 1 }, 3_600_000));
      assert.deepEqual(waits, [
        ['0', '10000'],
        ['10000', '20000'],
      ]);
    });
  }

  test('the key of a bucket expires when the bucket is full again', async (t) => {
    const key = 'penstock-test:bucket:expiry';
    t.after(() => client.del(key));
    await client.del(key);
    const expiring = createScriptedBuckets(client, () => 0, true);
    for (const fullInMs of [10_000, 20_000, 30_000]) {
      await expiring.reserveExactly(key, { perSecond: 0.1, burst: 2 }, 3_600_000);
      const ttlMs = await client.pttl(key);
      assert.ok(ttlMs <= fullInMs && ttlMs > fullInMs - 2_000, `the TTL is ${ttlMs} ms`);
    }
  });
});

test('token buckets in Redis use the clock of Redis, in milliseconds', {
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

describe('a batch of Redis commands', { skip: skipWithoutRedisServer }, () => {
  test('is executed as one script although one of its commands fails', async (t) => {
    const redis = await startRedis(t);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    await keyValues.write('list', 'replaced by a list');
    const [listKey = ''] = [await redis.command('KEYS', '*list')].flat().map(String);
    await redis.command('DEL', listKey);
    await redis.command('RPUSH', listKey, 'text');
    await keyValues.write('value', 'before');
    const [[connection = ''], scripts] = [await connectionsTo(redis), await scriptCount(redis)];
    const outcomes = await Promise.allSettled([
      keyValues.writeIfAbsent('other', 'text'),
      keyValues.replace('list', 'before', 'after'),
      keyValues.replace('value', 'before', 'after'),
      keyValues.read('value'),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.code)),
      [true, 'STATE_UNAVAILABLE', true, 'after'],
    );
    assert.equal(await scriptCount(redis), scripts + 1);
    assert.ok((await connectionsTo(redis)).includes(connection), 'the connection stays open');
  });

  test('is split after each large result, so that small results are not delayed', async (t) => {
    const redis = await startRedis(t);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    const large = 'x'.repeat(2 * 1024 * 1024);
    await keyValues.write('large', large);
    const scripts = await scriptCount(redis);
    const [absent, ...values] = await Promise.all([
      keyValues.read('absent'),
      ...Array.from({ length: 8 }, () => keyValues.read('large')),
    ]);
    assert.equal(absent, undefined);
    assert.ok(values.every((value) => value === large));
    assert.equal(await scriptCount(redis), scripts + 8);
  });

  test('fails on a master that has become a replica, and the client connects again to find the new master', async (t) => {
    const redis = await startRedis(t);
    const { keyValues } = await openRedisState(t, { kind: 'single', url: redis.url });
    await keyValues.write('key', 'before');
    const [before = ''] = await connectionsTo(redis);
    await redis.command('REPLICAOF', '127.0.0.1', new URL(redis.url).port);
    const read = keyValues.read('key'); // a replica answers reads
    await assertUnavailable(() => keyValues.write('key', 'refused'));
    assert.equal(await read, 'before');
    await until(5_000, 'there is a new connection', async () => {
      const now = await connectionsTo(redis);
      return now.length === 1 && now[0] !== before;
    });
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await untilAvailable(5_000, () => keyValues.write('key', 'after'));
    assert.equal(await keyValues.read('key'), 'after');
  });
});

/** How many scripts the server has executed. */
async function scriptCount(redis: RedisServer): Promise<number> {
  const stats = String(await redis.command('INFO', 'commandstats'));
  const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),/g)].map(([, count]) => Number(count));
  return calls.reduce((sum, count) => sum + count, 0);
}

/** The ids of the connections, without the one that asks. */
async function connectionsTo(redis: RedisServer): Promise<readonly string[]> {
  const list = String(await redis.command('CLIENT', 'LIST', 'TYPE', 'normal'));
  return list
    .split('\n')
    .filter((line) => line.startsWith('id=') && !line.includes('cmd=client'))
    .map((line) => /id=(\d+)/.exec(line)?.[1] ?? '');
}
