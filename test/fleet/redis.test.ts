/** Two instances on one Redis keep every payment where it was born, also while Redis is killed or frozen. */

import { describe, test } from 'node:test';
import { lazy, startSingleRedis } from '../kit/fleet-redis.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { playOutage } from './outages.ts';
import { promisesOfBoundaries } from './promises-of-boundaries.ts';
import { promisesOfRefusedSwitches } from './promises-of-refused-switches.ts';
import { promisesOfRestarts } from './promises-of-restarts.ts';
import { promisesOfSwitching } from './promises-of-switching.ts';

describe('two instances on one Redis', { skip: skipWithoutRedisServer }, () => {
  const life = lifeOfAllTests();
  const redis = lazy(() => startSingleRedis(life));
  promisesOfSwitching(redis);
  promisesOfBoundaries(redis);
  promisesOfRefusedSwitches(redis);
  promisesOfRestarts(redis);

  test('serve known statuses and refuse new payments while Redis is dead, and lose nothing when it is restarted', async (t) => {
    const durable = await startSingleRedis(t, ['--appendonly', 'yes', '--appendfsync', 'always']);
    await playOutage(t, durable, { begin: durable.kill, end: durable.restart });
  });

  test('serve known statuses and refuse new payments while Redis is frozen, and lose nothing when it continues', async (t) => {
    const frozen = await startSingleRedis(t);
    await playOutage(t, frozen, { begin: frozen.freeze, end: frozen.thaw });
  });
});
