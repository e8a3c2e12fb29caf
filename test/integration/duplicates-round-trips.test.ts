/**
 * The budget of the ledger: two round trips to Redis before the bank is called, and one before the TPP gets the response.
 *
 * An operation on the state is one command to Redis; operations that are in progress at the same time are one round trip.
 * Operations of the heartbeat and of other stages are not counted.
 */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { createCountingState } from '../kit/counting-state.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { newWrite, outcomeOf, withUpdates, writeNames } from '../kit/writes.ts';

const isOfTheLedger = (operation: string) => / ledger\b/.test(operation) && !operation.startsWith('members');

async function startCounting(t: TestContext) {
  const bank = await startBank(t);
  const state = createCountingState(redisStateFactory(await sharedRedisUrl(t))(), isOfTheLedger);
  const gateway = await startGateway(
    t,
    { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...withUpdates },
    state,
  );
  return { bank, gateway, state };
}

/** The operations that the response to the TPP does not wait for. */
const background = ['publish', 'remove'];
const isBlocking = (operation: string) => !background.some((name) => operation.startsWith(name));

describe('the ledger on Redis', { skip: skipWithoutRedis }, () => {
  for (const name of writeNames) {
    test(`needs at most two round trips before the bank is called, and one before the TPP gets the response: ${name}`, async (t) => {
      const { bank, gateway, state } = await startCounting(t);
      state.dropResponses(...background);
      const write = await newWrite(bank, name);
      state.reset();
      assert.match(outcomeOf(await call(gateway.url, write.call)), /^20[012]$/);

      const trips = state.roundTrips;
      const sendingTrip = trips.findIndex((trip) => trip.some((operation) => operation.startsWith('add')));
      assert.ok(sendingTrip >= 0 && sendingTrip < 2, JSON.stringify(trips));
      const blockingTrips = trips.slice(sendingTrip + 1).filter((trip) => trip.some(isBlocking));
      assert.ok(blockingTrips.length <= 1, JSON.stringify(trips));
    });
  }

  test('needs at most two round trips for a replay', async (t) => {
    const { bank, gateway, state } = await startCounting(t);
    const write = await newWrite(bank, 'initiation');
    await call(gateway.url, write.call);
    state.reset();
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '201 replayed');
    assert.ok(state.roundTrips.length <= 2, JSON.stringify(state.roundTrips));
  });
});
