/** Two instances on a Redis Cluster keep every payment in the environment that created it. */

import { describe } from 'node:test';
import { lazy, startClusterRedis } from '../kit/fleet-redis.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { testBoundaries } from './boundaries-contract.ts';
import { testRestarts } from './restarts-contract.ts';
import { testSwitching } from './switching-contract.ts';

describe('two instances on a Redis Cluster', { skip: skipWithoutRedisServer }, () => {
  const life = scopeOfAllTests();
  const redis = lazy(() => startClusterRedis(life));
  testSwitching(redis);
  testBoundaries(life, redis);
  testRestarts(redis);
});
