/** The bucket in Lua answers as the arithmetic in TypeScript does, number by number. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { bucketScript } from '../../src/state/redis-scripts.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { sharedRedis, withoutRedis } from '../kit/redis.ts';
import { bucketCases } from '../unit/state/bucket-cases.ts';

const life = lifeOfAllTests();
const url = withoutRedis ? '' : await sharedRedis(life);

describe('the bucket of Redis, on a clock that the test sets', { skip: withoutRedis }, () => {
  const client = new Redis(url, { lazyConnect: true });
  life.after(() => client.disconnect());
  const script = bucketScript('local now = tonumber(ARGV[4])');

  for (const { name, turns } of bucketCases) {
    test(name, async (t) => {
      const key = `penstock-test:bucket:${name}`;
      t.after(() => client.del(key));
      await client.del(key);
      for (const [atMs, { perSecond, burst }, maxWaitMs, waitMs] of turns) {
        const [wait] = (await client.eval(script, 1, key, perSecond, burst, maxWaitMs, atMs)) as string[];
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
      for (const _ of [1, 2]) waits.push(await client.eval(script, 1, key, 0.1, 1, 3_600_000, 1_000));
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
      await client.eval(script, 1, key, 0.1, 2, 3_600_000, 0);
      const left = await client.pttl(key);
      assert.ok(left <= lifeMs && left > lifeMs - 2_000, `${left} ms are left`);
    }
  });
});
