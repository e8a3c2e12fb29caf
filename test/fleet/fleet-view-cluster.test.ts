/** What each of three instances on a Redis Cluster shows of all of them. */

import { describe } from 'node:test';
import { startClusterRedis } from '../kit/fleet-redis.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { testFleetView } from './fleet-view-contract.ts';

describe('the fleet view of three instances on a Redis Cluster', { skip: skipWithoutRedisServer }, () => {
  testFleetView(startClusterRedis, 3);
});
