/**
 * The budget of a status read: a cached status costs one round trip to Redis, although two environments and several tenants are
 * configured.
 *
 * Operations that are in progress at the same time are one round trip. Operations of the heartbeat are not counted.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { createCountingState } from '../kit/counting-state.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';

const isOfARead = (operation: string) => /^\w+ (payment:|status:(?!secret))/.test(operation);

describe('the status cache on Redis', { skip: skipWithoutRedis }, () => {
  test('reads the affinity and the cached status in one round trip', async (t) => {
    const bank = await startBank(t);
    const state = createCountingState(redisStateFactory(await sharedRedisUrl(t))(), isOfARead);
    const environment = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
    const environments = {
      active: 'sandbox',
      sandbox: environment,
      production: { ...environment, baseUrl: `${bank.baseUrl}/other` },
    };
    const gateway = await startGateway(t, { environments, clients: clientSettings() }, state);
    const headers = [['X-API-Key', apiKeyOf('shop')]] as const;
    const created = await call(gateway.url, { ...initiation, headers: [...initiation.headers, ...headers] });
    const read = { method: 'GET', path: `${transfersPath}/${jsonOf(created).paymentId}/status`, headers };
    assert.equal((await call(gateway.url, read)).status, 200);

    state.reset();
    const reply = await call(gateway.url, read);
    assert.match(reply.header('cache-status') ?? '', /^penstock; hit/);
    assert.deepEqual(
      state.roundTrips.map((trip) => trip.length),
      [2],
      JSON.stringify(state.roundTrips),
    );
  });
});
