/** What each of two instances on one Redis shows of all of them. */

import { describe } from 'node:test';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { testFleetView } from './fleet-view-contract.ts';

describe('the fleet view of two instances on one Redis', { skip: skipWithoutRedisServer }, () => {
  testFleetView(startSingleRedis, 2);
});
