/** Two instances on Redis with Sentinel keep every payment in the environment that created it, also when the master dies. */

import { describe, test } from 'node:test';
import { lazy, startSentinelRedis } from '../kit/fleet-redis.ts';
import { sendRedisCommand, skipWithoutRedisServer } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';
import { testOutage } from './outage-contract.ts';
import { testRestarts } from './restarts-contract.ts';
import { testSwitching } from './switching-contract.ts';

describe('two instances on Redis with Sentinel', { skip: skipWithoutRedisServer }, () => {
  const life = scopeOfAllTests();
  const redis = lazy(() => startSentinelRedis(life));
  testSwitching(redis);
  testRestarts(redis);

  // Last: the replica stays the master.
  test('serve reads and payments while the master is dead, and after its replica has taken over', async (t) => {
    const { master, replica, allowFailover } = await redis();
    const hasTakenOver = async () => /^role:master/m.test(await replicationOf(replica.port));
    await testOutage(t, await redis(), {
      begin: master.kill,
      end: async () => {
        await allowFailover();
        await until(20_000, 'the replica has taken over', hasTakenOver);
      },
    });
  });
});

const replicationOf = async (port: number) =>
  String(await sendRedisCommand(port, 'INFO', 'replication').catch(() => ''));
