/** Redis is killed, frozen or replaced under load: payments that are remembered go on, the others are refused at once. */

import { describe, test } from 'node:test';
import { oneRedis, redisWithSentinels } from '../kit/fleet-redis.ts';
import { commandOn, withoutRedisServer } from '../kit/redis.ts';
import { until } from '../kit/within.ts';
import { playOutage } from './outages.ts';

const keeping = ['--appendonly', 'yes', '--appendfsync', 'always'];

describe('status reads go on, new payments are refused at once, and all is well again within two seconds', {
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

  test('when the master dies, and the sentinels have put its replica in its place', async (t) => {
    const redis = await redisWithSentinels(t);
    await playOutage(t, redis, {
      begin: redis.master.kill,
      lastsMs: 300,
      end: () =>
        until(
          15_000,
          'the replica has taken over',
          async () => (await roleOf(redis.replica.port)) === 'master',
        ),
    });
  });
});

const roleOf = async (port: number) =>
  /^role:(\w+)/m.exec(String(await commandOn(port, 'INFO', 'replication').catch(() => '')))?.[1];
