/** Redis is down, frozen or full: status reads are still answered by the bank. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { sendConcurrently } from '../kit/concurrent-requests.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { impatientState, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { type RedisServer, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** Several environments and tenants: then a read needs the environment and the tenant of the payment. */
function severalEnvironments(baseUrl: string) {
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl, standardVersion: '1.3.11' },
    production: { baseUrl: `${baseUrl}/psd2`, standardVersion: '1.3.6' },
  };
  return { environments, clients: clientSettings() };
}

async function startWithRedis(t: TestContext) {
  const redis = await startRedis(t);
  let status = 'RCVD';
  let gate = Promise.resolve();
  const bank = await startStubBank(t, async ({ method }) => {
    await gate;
    if (method !== 'GET') status = 'CANC';
    return statusResponse(status);
  });
  const environments = {
    sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11', queryParameters: [] },
  };
  const gateway = await startGateway(t, {
    environments,
    deadlines: { status: '30s' }, // so many reads at once take long on a busy machine
    state: { postgres: await newMigratedPostgres(), redis: redis.url, ...impatientState },
  });
  const read = (payment: string) =>
    call(gateway.url, { method: 'GET', path: `${transfersPath}/${payment}/status` });
  const cancel = (payment: string) =>
    call(gateway.url, { method: 'DELETE', path: `${transfersPath}/${payment}` });
  /** Delays the bank's responses until the returned function is called. */
  const holdResponses = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    return resolve;
  };
  await read('warm-up');
  return { redis, bank, gateway, read, cancel, holdResponses };
}

/** Reads seven payments alternately; each read must return the bank's status. */
async function readOften(count: number, read: (payment: string) => Promise<Reply>): Promise<void> {
  for (let index = 0; index < count; index++) {
    const reply = await read(`payment-${index % 7}`);
    assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'RCVD']);
  }
}

const outages: Readonly<Record<string, (redis: RedisServer) => unknown>> = {
  killed: (redis) => redis.kill(),
  frozen: (redis) => redis.freeze(),
  full: (redis) => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
};

describe('the status cache while Redis is unavailable', {
  skip: skipWithoutRedisServer || skipWithoutPostgres,
}, () => {
  for (const [what, cause] of Object.entries(outages)) {
    test(`answers every read from the bank while Redis is ${what}, and caches again afterwards`, async (t) => {
      const { redis, read } = await startWithRedis(t);
      await cause(redis);
      await readOften(30, read);

      if (what === 'killed') await redis.restart();
      if (what === 'frozen') redis.thaw();
      if (what === 'full') await redis.command('CONFIG', 'SET', 'maxmemory', '0');
      await until(20_000, 'it is cached again', async () => {
        return (await read('afterwards')).header('Cache-Status')?.startsWith('penstock; hit;') === true;
      });
    });
  }

  for (const outage of ['killed', 'frozen'] as const) {
    test(`answers the reads of payments whose tenant the instance remembers while Redis is ${outage}`, async (t) => {
      const redis = await startRedis(t);
      const bank = await startStubBank(t, ({ method }) => {
        const { headers = [], body = '' } = statusResponse('RCVD', { paymentId: 'ours' });
        return { status: method === 'POST' ? 201 : 200, headers, body };
      });
      const gateway = await startGateway(t, {
        ...severalEnvironments(bank.baseUrl),
        state: { postgres: await newMigratedPostgres(), redis: redis.url, ...impatientState },
      });
      const send = (client: ClientName, request: Call) =>
        call(gateway.url, {
          ...request,
          headers: [...(request.headers ?? []), ['X-API-Key', apiKeyOf(client)]],
        });
      assert.equal((await send('shop', initiation)).status, 201);
      await outages[outage]?.(redis);

      const status = { method: 'GET', path: `${transfersPath}/ours/status` };
      for (let count = 0; count < 3; count++) {
        const reply = await send('shop', status);
        assert.deepEqual([reply.status, reply.text.includes('RCVD')], [200, true], reply.text);
      }
      assert.notEqual((await send('rival', status)).status, 200);
    });
  }

  test('returns the response of the bank although Redis freezes during the fetch', async (t) => {
    const { redis, read, bank, holdResponses } = await startWithRedis(t);
    const before = bank.requests.length;
    const release = holdResponses();
    const reply = read('payment');
    await until(20_000, 'the bank receives the read', () => bank.requests.length > before);
    redis.freeze();
    release();
    assert.equal((await reply).status, 200);
    redis.thaw();
  });

  test('causes few requests to the bank for two hundred concurrent equal reads', async (t) => {
    const { redis, gateway, bank, holdResponses } = await startWithRedis(t);
    await redis.kill();
    const before = bank.requests.length;
    const release = holdResponses();
    const path = `${transfersPath}/popular/status`;
    const { replies } = await sendConcurrently(t, [gateway], { method: 'GET', path }, 200);
    // Refused after the same lookups in the database: nearly all others have passed them then.
    assert.equal((await call(gateway.url, { method: 'GET', path: `${path}?unknown=1` })).status, 400);
    release();
    const outcomes = (await replies).map(({ status, text }) => (status === 200 ? status : text));
    assert.deepEqual([...new Set(outcomes)], [200]);
    // One for the first read, one for all reads that arrived after it was sent, and others for reads whose environment was found late.
    const sent = bank.requests.length - before;
    assert.ok(sent >= 2 && sent <= 10, `${sent} requests to the bank`);
  });

  test('sends a cancellation, and serves nothing older when Redis is available again', async (t) => {
    const { redis, read, cancel } = await startWithRedis(t);
    await read('payment');
    redis.freeze();
    const reply = await cancel('payment');
    assert.equal(reply.status, 200, reply.text);
    redis.thaw();
    await until(20_000, 'the cache works again', async () => {
      assert.equal(jsonOf(await read('payment')).transactionStatus, 'CANC');
      return (await read('payment')).header('Cache-Status')?.startsWith('penstock; hit;') === true;
    });
  });
});
