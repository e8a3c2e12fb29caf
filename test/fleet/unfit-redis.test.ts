/** A Redis that would forget what it is told is no place for payments. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';

describe('a Redis that may evict', { skip: skipWithoutRedisServer }, () => {
  test('is not started on: the exit code is 1, and the log says what to change', async (t) => {
    const { settings } = await startSingleRedis(t, [
      '--maxmemory',
      '100mb',
      '--maxmemory-policy',
      'allkeys-lru',
    ]);
    const environments = { sandbox: { baseUrl: 'https://bank.example' } };
    const started = startGatewayProcess(t, { environments, state: { redis: settings } });
    await assert.rejects(started, (error: Error) => {
      assert.match(error.message, /ended with 1: .*the gateway cannot start/s);
      assert.match(error.message, /allkeys-lru.*set maxmemory-policy to noeviction, or maxmemory to 0/);
      assert.doesNotMatch(error.message, /"serving"/);
      return true;
    });
  });
});
