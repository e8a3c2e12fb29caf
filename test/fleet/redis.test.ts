/** Two instances on one Redis keep every payment in the environment that created it, also while Redis is killed or frozen. */

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

  test('serve known statuses and refuse new payments while Redis is dead, and lose nothing when it is restarted', async (t) => {
    const durable = await startSingleRedis(t, ['--appendonly', 'yes', '--appendfsync', 'always']);
    await testOutage(t, durable, { begin: durable.kill, end: durable.restart });
  });

  test('serve known statuses and refuse new payments while Redis is frozen, and lose nothing when it continues', async (t) => {
    const frozen = await startSingleRedis(t);
    await testOutage(t, frozen, { begin: frozen.freeze, end: frozen.thaw });
  });
});
