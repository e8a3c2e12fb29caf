/** One X-Request-ID on two instances that share a Redis: one effect at the bank, and one answer for all. */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { State } from '../../src/state/ports.ts';
import { sendAtOnce } from '../kit/at-once.ts';
import { createBreakpointState } from '../kit/breakpoint-state.ts';
import { call } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { newWrite, outcomeOf, type Write, writeNames } from '../kit/writes.ts';

const life = lifeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** Two instances before one bank. @param firstWay what the first one's way to the state is made of */
async function startPair(t: TestContext, sections: object = {}, firstWay = (state: State) => state) {
  const bank = await startBank(t);
  const all = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...sections };
  const way = redisStateFactory(await redis());
  const one = await startGateway(t, all, firstWay(way()));
  return { bank, one, other: await startGateway(t, all, way()) };
}

/** A gate at the first claim: shut until it is opened. */
function gateAtClaim() {
  const [claimed, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const through = (state: State) =>
    createBreakpointState(state, async (_requestId, step) => {
      if (step !== 'claimed') return;
      claimed.resolve();
      await opened.promise;
    });
  return { through, claimed: claimed.promise, open: opened.resolve };
}

/** Sends a write on a connection that can be hung up. */
function hangingUp(url: string, write: Write) {
  const agent = new Agent();
  const reply = call(url, write.call, agent);
  return async () => {
    agent.destroy();
    await assert.rejects(reply);
  };
}

describe('one X-Request-ID on two instances', { skip: skipWithoutRedis }, () => {
  for (const name of writeNames) {
    test(`a hundred times at once is one ${name}: a hundred equal answers, ninety-nine of them replayed`, async (t) => {
      const { bank, one, other } = await startPair(t);
      const write = await newWrite(bank, name);
      const { replies } = await sendAtOnce(t, [one, other], write.call, 100);
      const all = await replies;
      assert.equal(new Set(all.map(({ status, text }) => `${status} ${text}`)).size, 1);
      assert.ok(all.every(({ status }) => status < 300));
      assert.equal(all.filter((reply) => reply.header('Idempotent-Replayed') === 'true').length, 99);
      assert.equal(write.timesReceived(), 1);
      assert.equal(write.effectCount() ?? 1, 1);
    });

    test(`is carried out once if the TPP hangs up before the bank has the ${name}, and the repeat gets its answer`, async (t) => {
      const gate = gateAtClaim();
      const { bank, one, other } = await startPair(t, {}, gate.through);
      const write = await newWrite(bank, name);
      const hangUp = hangingUp(one.url, write);
      await gate.claimed;
      await hangUp();
      assert.equal(write.timesReceived(), 0);
      gate.open();
      const again = await call(other.url, write.call);
      assert.match(outcomeOf(again), /^20[12] replayed$/);
      assert.equal(write.timesReceived(), 1);
      assert.equal(write.effectCount() ?? 1, 1);
    });

    test(`is carried out once if the TPP hangs up when the bank has the ${name}, and the repeat gets its answer`, async (t) => {
      const { bank, one, other } = await startPair(t);
      const write = await newWrite(bank, name);
      bank.injectFault({ name: 'latency', ms: 200, strikes: 'before-effect' }, { times: 1 });
      const hangUp = hangingUp(one.url, write);
      await bank.waitUntil(() => write.timesReceived() === 1);
      await hangUp();
      const again = await call(other.url, write.call);
      assert.match(outcomeOf(again), /^20[12] replayed$/);
      assert.equal(write.timesReceived(), 1);
      assert.equal(write.effectCount() ?? 1, 1);
    });
  }

  test('of two tenants is two payments, each with its own answer', async (t) => {
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
