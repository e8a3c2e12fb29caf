/** Redis is down, frozen or full: with one environment and one tenant, every status still comes from the bank. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sendAtOnce } from '../kit/at-once.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { type Sections, startGateway } from '../kit/gateway.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfers } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** Several environments and tenants: then a payment must be remembered, or nobody knows whose it is. */
function severalSides(baseUrl: string) {
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl, standardVersion: '1.3.11' },
    production: { baseUrl: `${baseUrl}/psd2`, standardVersion: '1.3.6' },
  };
  return { environments, clients: clientSettings() };
}

async function startLine(t: TestContext, sections: Sections = {}) {
  const redis = await startRedis(t);
  let status = 'RCVD';
  let gate = Promise.resolve();
  const bank = await startStubBank(t, async ({ method }) => {
    await gate;
    if (method !== 'GET') status = 'CANC';
    return statusResponse(status);
  });
  const environments = { sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } };
  const gateway = await startGateway(t, { environments, state: { redis: redis.url }, ...sections });
  const read = (payment: string) =>
    call(gateway.url, { method: 'GET', path: `${transfers}/${payment}/status` });
  const cancel = (payment: string) =>
    call(gateway.url, { method: 'DELETE', path: `${transfers}/${payment}` });
  /** Has the bank's answers wait until the returned function is called. */
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    return resolve;
  };
  await read('warm-up');
  return { redis, bank, gateway, read, cancel, hold };
}

/** Reads that many times, seven payments in turn; each read must be answered with the bank's status. */
async function readOften(count: number, read: (payment: string) => Promise<Reply>): Promise<void> {
  for (let index = 0; index < count; index++) {
    const reply = await read(`payment-${index % 7}`);
    assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'RCVD']);
  }
}

const harms: Readonly<Record<string, (redis: RedisServer) => unknown>> = {
  killed: (redis) => redis.kill(),
  frozen: (redis) => redis.freeze(),
  full: (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
};

describe('while Redis is out of order', { skip: skipWithoutRedisServer }, () => {
  for (const [how, harm] of Object.entries(harms)) {
    test(`${how}: every status comes from the bank, and is cached again afterwards`, async (t) => {
      const { redis, read } = await startLine(t);
      await harm(redis);
      await readOften(30, read);

      if (how === 'killed') await redis.restart();
      if (how === 'frozen') redis.thaw();
      if (how === 'full') await redis.command('CONFIG', 'SET', 'maxmemory', '0');
      await until(20_000, 'it is cached again', async () => {
        return (await read('afterwards')).header('Cache-Status')?.startsWith('penstock; hit;') === true;
      });
    });
  }

  for (const harm of ['killed', 'frozen'] as const) {
    test(`${harm}: with several tenants, the statuses of payments that the instance remembers come as well`, async (t) => {
      const redis = await startRedis(t);
      const bank = await startStubBank(t, ({ method }) => {
        const { headers = [], body = '' } = statusResponse('RCVD', { paymentId: 'ours' });
        return { status: method === 'POST' ? 201 : 200, headers, body };
      });
      const gateway = await startGateway(t, { ...severalSides(bank.baseUrl), state: { redis: redis.url } });
      const ask = (client: ClientName, one: Call) =>
        call(gateway.url, { ...one, headers: [...(one.headers ?? []), ['X-API-Key', apiKeyOf(client)]] });
      assert.equal((await ask('shop', initiation)).status, 201);
      await harms[harm]?.(redis);

      const status = { method: 'GET', path: `${transfers}/ours/status` };
      for (let turn = 0; turn < 3; turn++) {
        const reply = await ask('shop', status);
        assert.deepEqual([reply.status, reply.text.includes('RCVD')], [200, true], reply.text);
      }
      assert.notEqual((await ask('rival', status)).status, 200);
    });
  }

  test('frozen while the bank answers: the answer comes all the same', async (t) => {
    const { redis, read, bank, hold } = await startLine(t);
    const before = bank.requests.length;
    const letGo = hold();
    const reply = read('meanwhile');
    await until(20_000, 'the bank is asked', () => bank.requests.length > before);
    redis.freeze();
    letGo();
    assert.equal((await reply).status, 200);
    redis.thaw();
  });

  test('five hundred equal reads at once are still two requests at the bank', async (t) => {
    const { redis, gateway, bank, hold } = await startLine(t);
    await redis.kill();
    const before = bank.requests.length;
    const letGo = hold();
    const path = `${transfers}/popular/status`;
    const { replies } = await sendAtOnce(t, [gateway], { method: 'GET', path }, 500);
    letGo();
    assert.ok((await replies).every(({ status }) => status === 200));
    assert.equal(
      bank.requests.length - before,
      2,
      'one for whoever came first, one for all who came after it was sent',
    );
  });

  test('a cancellation is refused with STATE_UNAVAILABLE, and nothing is sent', async (t) => {
    const { redis, read, cancel, bank } = await startLine(t);
    await redis.kill();
    const reply = await cancel('payment');
    assert.deepEqual([reply.status, reply.header('Penstock-Error')], [503, 'STATE_UNAVAILABLE']);
    assert.ok(bank.requests.every(({ method }) => method === 'GET'));
    assert.equal(jsonOf(await read('payment')).transactionStatus, 'RCVD');
  });

  test('a cancellation goes on if the configuration allows it, and nothing of before is served when Redis is back', async (t) => {
    const { redis, read, cancel } = await startLine(t, { idempotency: { ifStateFails: 'allow' } });
    await read('payment');
    redis.freeze();
    assert.equal((await cancel('payment')).status, 200);
    redis.thaw();
    await until(20_000, 'Redis is of use again', async () => {
      assert.equal(jsonOf(await read('payment')).transactionStatus, 'CANC');
      return (await read('payment')).header('Cache-Status')?.startsWith('penstock; hit;') === true;
    });
  });
});
