/** A gateway does not start on a Redis that may evict keys. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';

describe('a gateway on a Redis that may evict keys', { skip: skipWithoutRedisServer }, () => {
  test('does not start, exits with 1, and logs what to change', async (t) => {
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
