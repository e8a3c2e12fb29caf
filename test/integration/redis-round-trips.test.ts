/**
 * The budget of a request of a client with a quota, with two environments and several tenants: which operations on the state share a
 * round trip. The permit of a request that runs alone costs none of its own.
 *
 * Operations that are in progress at the same time are one round trip. Those of the heartbeat, and those that the response does
 * not wait for, are not counted.
 */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { createCountingState } from '../kit/counting-state.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';

const isOfARequest = (operation: string) =>
  /^(?!remove)\w+ (status:(?!secret)|bucket:(client|sandbox))/.test(operation);

describe('a request of a client with a quota, on Redis', { skip: skipWithoutRedis }, () => {
  test('waits for one round trip before a payment is sent', async (t) => {
    const { pay, trips } = await startClient(t);
    await pay();
    assert.deepEqual(await trips(pay), [['lease bucket', 'take bucket']]);
  });

  test('waits for one round trip before a read of a payment is sent', async (t) => {
    const { pay, get, trips } = await startClient(t);
    const id = await pay();
    assert.deepEqual(await trips(() => get(`${id}/authorisations`)), [['lease bucket', 'take bucket']]);
  });

  test('waits for one round trip if its status is cached', async (t) => {
    const { pay, get, trips } = await startClient(t);
    const id = await pay();
    await get(`${id}/status`);
    assert.deepEqual(await trips(() => get(`${id}/status`)), [['read status', 'take bucket']]);
  });

  test('reads nothing more where the contract is enforced, and knows with which product its payment was initiated', async (t) => {
    const { pay, get, ask, trips } = await startClient(t, { requests: 'enforce', responses: 'off' });
    const id = await pay();
    assert.deepEqual(await trips(() => get(`${id}/authorisations`)), [['lease bucket', 'take bucket']]);
    const path = `${transfersPath.replace('sepa', 'instant-sepa')}/${id}`;
    let refused = '';
    const refusal = await trips(async () => {
      refused = (await ask({ method: 'GET', path })).text;
    });
    assert.match(refused, /path\/payment-product \(path\)/);
    assert.deepEqual(refusal[0], ['lease bucket', 'take bucket']); // the permit goes back later
  });

  test('waits for two round trips before a status read is sent', async (t) => {
    const { pay, get, trips } = await startClient(t);
    for (let attempt = 1; ; attempt++) {
      const id = await pay();
      const [first, second = [], third] = await trips(() => get(`${id}/status`));
      // If the first trip took 15 ms, as on a busy machine, the read does not wait for other instances.
      if (second.length === 1 && attempt < 20) continue;
      assert.deepEqual(first, ['read status', 'take bucket']);
      assert.deepEqual(second, ['lease bucket', 'read status', 'writeIfAbsent status']);
      assert.deepEqual(third, ['writeIfAbsent status'], 'the response is recorded');
      return;
    }
  });
});

async function startClient(t: TestContext, contract: object = {}) {
  const banks = [await startBank(t), await startBank(t)];
  const redis = await sharedRedisUrl(t);
  const state = createCountingState(redisStateFactory(redis)(), isOfARequest);
  const [sandbox, production] = banks.map(({ baseUrl }) => ({
    baseUrl,
    standardVersion: '1.3.11',
    contract,
  }));
  const sections = {
    environments: { active: 'sandbox', sandbox, production },
    clients: clientSettings().map((client) => ({ ...client, quota: { rate: '100/s', burst: 100 } })),
    shaping: { rate: '10/s', burst: 50 }, // too slow for blocks of permits
    state: { redis },
    statusCache: { pendingTtl: '1min', pendingTtlMax: '1min' },
  };
  const gateway = await startGateway(t, sections, state);
  const ask = ({ headers = [], ...rest }: Call) =>
    call(gateway.url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf('shop')]] });
  const send = async (one: Call) => {
    const reply = await ask(one);
    assert.ok(reply.status < 300, reply.text);
    return reply;
  };
  return {
    ask,
    get: (path: string) => send({ method: 'GET', path: `${transfersPath}/${path}` }),
    pay: async () => String(jsonOf(await send(initiation)).paymentId),
    /** The round trips of a request, each with its operations in alphabetical order, without the details of their keys. */
    async trips(act: () => Promise<unknown>) {
      state.reset();
      await act();
      return state.roundTrips.map((trip) => trip.map((operation) => operation.split(':')[0]).toSorted());
    },
  };
}
