/** A Redis that would forget what it is told is no place for payments. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInstance } from '../kit/fleet.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
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
    const instance = await createInstance(t, { environments, state: { redis: settings } });
    const serve = instance.command('serve');
    assert.equal(await serve.exitCode(), 1);
    assert.match(serve.stdout(), /the gateway cannot start/);
    assert.match(serve.stdout(), /allkeys-lru.*set maxmemory-policy to noeviction, or maxmemory to 0/);
    assert.doesNotMatch(serve.stdout(), /"serving"/);
  });
});
