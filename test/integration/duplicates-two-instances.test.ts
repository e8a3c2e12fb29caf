/** Repeats to two instances that share a PostgreSQL database and a Redis: one effect at the bank, and the same response for all. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { Database } from '../../src/store/database.ts';
import { openGatewayDatabase } from '../../src/store/gateway-database.ts';
import { createBreakpointDatabase } from '../kit/breakpoint-database.ts';
import { call } from '../kit/call.ts';
import { sendConcurrently } from '../kit/concurrent-requests.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { newWrite, outcomeOf, type Write, withUpdates, writeNames } from '../kit/writes.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** @param firstConnection wraps the database of the first instance */
async function startPair(
  t: TestContext,
  sections: object = {},
  firstConnection = (database: Database) => database,
) {
  const bank = await startBank(t);
  const state = { postgres: await newMigratedPostgres(), redis: await redis() };
  const all = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...withUpdates, ...sections, state };
  const newState = redisStateFactory(await redis());
  const { database, heartbeatDatabase } = openGatewayDatabase({ ...state, file: null });
  t.after(() => database.close());
  const stores = { database: firstConnection(database), heartbeatDatabase, state: newState() };
  const one = await startGateway(t, all, stores);
  return { bank, one, other: await startGateway(t, all, newState()) };
}

/** Blocks the first instance right after its claim. */
function blockAtClaim() {
  const [reached, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const connection = (database: Database) =>
    createBreakpointDatabase(database, async (_requestId, step) => {
      if (step !== 'claimed') return;
      reached.resolve();
      await resumed.promise;
    });
  return { connection, reached: reached.promise, resume: resumed.resolve };
}

/** Sends a write. @returns closes the connection */
function sendDisconnectable(url: string, write: Write) {
  const agent = new Agent();
  const reply = call(url, write.call, agent);
  return async () => {
    agent.destroy();
    await assert.rejects(reply);
  };
}

describe('a write to two instances', { skip: skipWithoutRedis }, () => {
  for (const name of writeNames) {
    test(`is executed once if a hundred equal requests arrive at once, and ninety-nine responses are replays: ${name}`, async (t) => {
      const { bank, one, other } = await startPair(t);
      const write = await newWrite(bank, name);
      const { replies } = await sendConcurrently(t, [one, other], write.call, 100);
      const all = await replies;
      assert.equal(new Set(all.map(({ status, text }) => `${status} ${text}`)).size, 1);
      assert.ok(all.every(({ status }) => status < 300));
      assert.equal(all.filter((reply) => reply.header('Idempotent-Replayed') === 'true').length, 99);
      assert.equal(write.timesReceived(), 1);
      assert.equal(write.effectCount() ?? 1, 1);
    });

    test(`is executed once if the TPP disconnects before it reaches the bank, and a repeat gets the response: ${name}`, async (t) => {
      const breakpoint = blockAtClaim();
      const { bank, one, other } = await startPair(t, {}, breakpoint.connection);
      const write = await newWrite(bank, name);
      const disconnect = sendDisconnectable(one.url, write);
      await breakpoint.reached;
      await disconnect();
      assert.equal(write.timesReceived(), 0);
      breakpoint.resume();
      const repeat = await call(other.url, write.call);
      assert.match(outcomeOf(repeat), /^20[012] replayed$/);
      assert.equal(write.timesReceived(), 1);
      assert.equal(write.effectCount() ?? 1, 1);
    });

    test(`is executed once if the TPP disconnects after it reached the bank, and a repeat gets the response: ${name}`, async (t) => {
      const { bank, one, other } = await startPair(t);
      const write = await newWrite(bank, name);
      bank.injectFault({ name: 'latency', ms: 200, strikes: 'before-effect' }, { times: 1 });
      const disconnect = sendDisconnectable(one.url, write);
      await bank.waitUntil(() => write.timesReceived() === 1);
      await disconnect();
      const repeat = await call(other.url, write.call);
      assert.match(outcomeOf(repeat), /^20[012] replayed$/);
      assert.equal(write.timesReceived(), 1);
      assert.equal(write.effectCount() ?? 1, 1);
    });
  }

  test('is two payments if two tenants use the same X-Request-ID', async (t) => {
    const { bank, one, other } = await startPair(t, { clients: clientSettings() });
    const write = await newWrite(bank, 'initiation');
    const as = (client: ClientName, { url }: { readonly url: string }) =>
      call(url, { ...write.call, headers: [...(write.call.headers ?? []), ['X-API-Key', apiKeyOf(client)]] });
    const [shop, rival] = await Promise.all([as('shop', one), as('rival', other)]);
    const [shopAgain, rivalAgain] = await Promise.all([as('shop', other), as('rival', one)]);

    assert.deepEqual([outcomeOf(shop), outcomeOf(rival)], ['201', '201']);
    assert.deepEqual([outcomeOf(shopAgain), outcomeOf(rivalAgain)], ['201 replayed', '201 replayed']);
    assert.deepEqual([shopAgain.text, rivalAgain.text], [shop.text, rival.text]);
    assert.notEqual(shop.text, rival.text);
    assert.equal(write.effectCount(), 2);
  });
});
