/** Two instances on the Redis that sentinels watch keep every payment where it was born, also when the master dies. */

import { describe, test } from 'node:test';
import { lazy, startSentinelRedis } from '../kit/fleet-redis.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { sendRedisCommand, skipWithoutRedisServer } from '../kit/redis.ts';
import { until } from '../kit/within.ts';
import { playOutage } from './outages.ts';
import { promisesOfBoundaries } from './promises-of-boundaries.ts';
import { promisesOfRefusedSwitches } from './promises-of-refused-switches.ts';
import { promisesOfRestarts } from './promises-of-restarts.ts';
import { promisesOfSwitching } from './promises-of-switching.ts';

describe('two instances on the Redis that sentinels watch', { skip: skipWithoutRedisServer }, () => {
  const life = lifeOfAllTests();
  const redis = lazy(() => startSentinelRedis(life));
  promisesOfSwitching(redis);
  promisesOfBoundaries(redis);
  promisesOfRefusedSwitches(redis);
  promisesOfRestarts(redis);

  // Last: the replica stays the master.
  test('serve status reads while the master is dead, and take payments again once its replica has taken over', async (t) => {
    const { master, replica } = await redis();
    const hasTakenOver = async () => /^role:master/m.test(await replicationOf(replica.port));
    await playOutage(t, await redis(), {
      begin: master.kill,
      end: () => until(15_000, 'the replica has taken over', hasTakenOver),
    });
  });
});

const replicationOf = async (port: number) =>
  String(await sendRedisCommand(port, 'INFO', 'replication').catch(() => ''));
