/** Two instances on one Redis keep every payment where it was born. */

import { describe } from 'node:test';
import { lazy, startSingleRedis } from '../kit/fleet-redis.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
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
});
