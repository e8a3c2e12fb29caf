/** Two instances on one Redis keep every payment in the environment that created it, and go on while Redis is killed or frozen. */

import { describe, test } from 'node:test';
import { lazy, startSingleRedis } from '../kit/fleet-redis.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { testBoundaries } from './boundaries-contract.ts';
import { testOutage } from './outage-contract.ts';
import { testRefusedSwitches } from './refused-switches-contract.ts';
import { testRestarts } from './restarts-contract.ts';
import { testSwitching } from './switching-contract.ts';

describe('two instances on one Redis', { skip: skipWithoutRedisServer }, () => {
  const life = scopeOfAllTests();
  const redis = lazy(() => startSingleRedis(life));
  testSwitching(redis);
  testBoundaries(life, redis);
  testRefusedSwitches(redis);
  testRestarts(redis);

  test('serve reads and payments while Redis is dead, and after it is restarted', async (t) => {
    const dead = await startSingleRedis(t); // it comes back empty
    await testOutage(t, dead, { begin: dead.kill, end: dead.restart });
  });

  test('serve reads and payments while Redis is frozen, and after it continues', async (t) => {
    const frozen = await startSingleRedis(t);
    await testOutage(t, frozen, { begin: frozen.freeze, end: frozen.thaw });
  });
});
