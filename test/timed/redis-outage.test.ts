/** Redis is killed or frozen under load: payments that are remembered go on, the others are refused at once. */

import { describe, test } from 'node:test';
import { playOutage } from '../fleet/outages.ts';
import { oneRedis } from '../kit/fleet-redis.ts';
import { withoutRedisServer } from '../kit/redis.ts';

const keeping = ['--appendonly', 'yes', '--appendfsync', 'always'];

describe('status reads go on, new payments are refused at once, and all is well two seconds after the end', {
  skip: withoutRedisServer,
}, () => {
  test('when Redis is killed, and started again with what it had kept', async (t) => {
    const redis = await oneRedis(t, keeping);
    await playOutage(t, redis, { begin: redis.kill, lastsMs: 1_500, end: redis.restart });
  });

  test('when Redis freezes, and goes on', async (t) => {
    const redis = await oneRedis(t);
    await playOutage(t, redis, { begin: redis.freeze, lastsMs: 2_000, end: redis.thaw });
  });
});
