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
