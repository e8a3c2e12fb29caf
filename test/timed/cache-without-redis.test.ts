/** Redis is down, frozen or full: with one environment and one tenant, every status still comes from the bank. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sendAtOnce } from '../kit/at-once.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { type Sections, startGateway } from '../kit/gateway.ts';
import { startLatencyProxy } from '../kit/latency-proxy.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfers } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** What a read may take longer than with a Redis that is well: 60 ms are promised, the rest is for the machine. */
const slowerMs = 150;

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

/** Reads that many times, one after the other; seven payments unless it is done otherwise. Each of which must come. @returns how long each took, the slowest last */
async function timesOf(
  count: number,
  read: (payment: string, index: number) => Promise<Reply>,
): Promise<readonly number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const startMs = performance.now();
    const reply = await read(`payment-${index % 7}`, index);
    times.push(performance.now() - startMs);
    assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'RCVD']);
  }
  return times.toSorted((one, other) => one - other);
}

const median = (sorted: readonly number[]) => sorted[Math.floor(sorted.length / 2)] ?? 0;
const slowest = (sorted: readonly number[]) => sorted.at(-1) ?? 0;

const harms: Readonly<Record<string, (redis: RedisServer) => unknown>> = {
  killed: (redis) => redis.kill(),
  frozen: (redis) => redis.freeze(),
  full: (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
};

describe('while Redis is out of order', { skip: skipWithoutRedisServer }, () => {
  for (const [how, harm] of Object.entries(harms)) {
    test(`${how}: every status comes from the bank, hardly later, and is cached again afterwards`, async (t) => {
      const { redis, read } = await startLine(t);
      const well = await timesOf(20, (payment) => read(`well-${payment}`));
      await harm(redis);
      const times = await timesOf(60, read);
      const nearlySlowest = times.at(-3) ?? 0; // two of sixty may meet with a busy machine
      assert.ok(nearlySlowest - median(well) < slowerMs, `three reads took ${nearlySlowest} ms`);
      assert.ok(slowest(times) < 1_000, `a read took ${slowest(times)} ms`);
      const [usual, worst, before] = [median(times), slowest(times), median(well)].map((ms) => ms.toFixed(1));
      t.diagnostic(`${how}: a read took ${usual} ms as a rule, ${worst} ms at worst; ${before} ms before`);

      if (how === 'killed') await redis.restart();
      if (how === 'frozen') redis.thaw();
      if (how === 'full') await redis.command('CONFIG', 'SET', 'maxmemory', '0');
      await until(5_000, 'it is cached again', async () => {
        return (await read('afterwards')).header('Cache-Status')?.startsWith('penstock; hit;') === true;
      });
    });
  }

  test('slow: statuses that are not kept come hardly later, for Redis is waited for twice and no more', async (t) => {
    const redis = await startRedis(t);
    const way = await startLatencyProxy(t, redis.port);
    const { read } = await startLine(t, { state: { redis: `redis://127.0.0.1:${way.port}` } });
    const well = await timesOf(40, (_, index) => read(`well-${index}`));
    way.delayBy(25);
    const slow = await timesOf(40, (_, index) => read(`slow-${index}`));
    const [before, usual, worst] = [median(well), median(slow), slowest(slow)];
    assert.ok(usual - before < 75, `a read takes ${usual - before} ms longer`); // 60 are promised, the rest is for the machine
    t.diagnostic(
      `slow by 25 ms: ${usual.toFixed(1)} ms as a rule, ${worst.toFixed(1)} ms at worst, ${before.toFixed(1)} before`,
    );
  });

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

  test('frozen while the bank answers: the answer comes hardly later', async (t) => {
    const { redis, read, bank, hold } = await startLine(t);
    const before = bank.requests.length;
    const letGo = hold();
    const reply = read('meanwhile');
    await until(5_000, 'the bank is asked', () => bank.requests.length > before);
    redis.freeze();
    const startMs = performance.now();
    letGo();
    assert.equal((await reply).status, 200);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs < slowerMs, `it took ${tookMs} ms`);
    t.diagnostic(`frozen meanwhile: ${tookMs.toFixed(1)} ms`);
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
    await until(5_000, 'Redis is of use again', async () => {
      assert.equal(jsonOf(await read('payment')).transactionStatus, 'CANC');
      return (await read('payment')).header('Cache-Status')?.startsWith('penstock; hit;') === true;
    });
  });
});
