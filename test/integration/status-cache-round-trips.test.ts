/**
 * The budget of reads with two environments and several tenants: a cached status costs one round trip to Redis, and a read of the
 * payment one before the bank is called and none after its response.
 *
 * Operations that are in progress at the same time are one round trip. Operations of the heartbeat are not counted.
 */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { createCountingState } from '../kit/counting-state.ts';
import { startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const isOfARead = (operation: string) => /^\w+ status:(?!secret)/.test(operation);

describe('the status cache on Redis', { skip: skipWithoutRedis }, () => {
  test('reads the cached status in one round trip', async (t) => {
    const { state, read } = await startGatewayWithPayment(t);
    await read('/status');
    state.reset();
    const reply = await read('/status');
    assert.match(reply.header('cache-status') ?? '', /^penstock; hit/);
    assert.deepEqual(
      state.roundTrips.map((trip) => trip.length),
      [1],
      JSON.stringify(state.roundTrips),
    );
  });

  test('reads the cached status while the bank works on a read of the payment', async (t) => {
    const { state, read, respondWhen } = await startGatewayWithPayment(t);
    await read('');
    state.reset();
    // Times out if the state is read only after the response.
    respondWhen(() => state.roundTrips.flat().some((operation) => operation.startsWith('read status:')));
    assert.equal((await read('')).status, 200);
    assert.deepEqual(
      state.roundTrips.map((trip) => trip.length),
      [1],
      JSON.stringify(state.roundTrips),
    );
  });
});

/** Two environments and two tenants, and a payment of one of them. */
async function startGatewayWithPayment(t: TestContext) {
  let isDue = () => true;
  const bank = await startStubBank(t, async ({ method }) => {
    await until(10_000, 'the bank may respond', isDue);
    const body = JSON.stringify({ paymentId: 'a-payment', transactionStatus: 'ACTC' });
    return { status: method === 'POST' ? 201 : 200, headers: [['Content-Type', 'application/json']], body };
  });
  const state = createCountingState(redisStateFactory(await sharedRedisUrl(t))(), isOfARead);
  const environment = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
  const other = { ...environment, baseUrl: `${bank.baseUrl}/other` };
  const environments = { active: 'sandbox', sandbox: environment, production: other };
  const statusCache = { pendingTtl: '1min', pendingTtlMax: '1min' };
  const sections = { environments, statusCache, clients: clientSettings() };
  const gateway = await startGateway(t, sections, state);
  const key = ['X-API-Key', apiKeyOf('shop')] as const;
  const created = await call(gateway.url, { ...initiation, headers: [...initiation.headers, key] });
  assert.equal(created.status, 201, created.text);
  return {
    state,
    read: (tail: string) =>
      call(gateway.url, { method: 'GET', path: `${transfersPath}/a-payment${tail}`, headers: [key] }),
    respondWhen(condition: () => boolean) {
      isDue = condition;
    },
  };
}
