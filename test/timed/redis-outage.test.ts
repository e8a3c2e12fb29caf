/** Redis is killed or frozen under load: payments that are remembered go on, the others are refused at once. */

import { describe, test } from 'node:test';
import { playOutage } from '../fleet/outages.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';

const keeping = ['--appendonly', 'yes', '--appendfsync', 'always'];

describe('status reads go on, new payments are refused at once, and all is well two seconds after the end', {
  skip: skipWithoutRedisServer,
}, () => {
  test('when Redis is killed, and started again with what it had kept', async (t) => {
    const redis = await startSingleRedis(t, keeping);
    await playOutage(t, redis, { begin: redis.kill, lastsMs: 1_500, end: redis.restart });
  });

  test('when Redis freezes, and goes on', async (t) => {
    const redis = await startSingleRedis(t);
    await playOutage(t, redis, { begin: redis.freeze, lastsMs: 2_000, end: redis.thaw });
  });
});
