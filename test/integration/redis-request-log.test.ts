/** The records of requests on a real Redis: what they cost there, what they contain, and what an outage of Redis means for them. */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import { sliceOfDay } from '../../src/contract-guard/report-days.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type GatewayUnderTest, impatientState, startGatewayWithBank } from '../kit/gateway.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const unknownPayment = `${transfersPath}/unknown/status`;

const send = (gateway: GatewayUnderTest, path: string = unknownPayment) =>
  call(gateway.url, { method: 'GET', path, requestId: randomUUID() });

async function search(gateway: GatewayUnderTest, query: Readonly<Record<string, string>>) {
  const reply = await callAdminApi(gateway, 'GET', `/api/search?${new URLSearchParams(query)}`);
  assert.equal(reply.status, 200, reply.text);
  return JSON.parse(reply.text) as { readonly requests: readonly { readonly xRequestId: string }[] };
}

/** All commands that this Redis executes, with the time of each: seconds since 1970. */
async function monitorRedis(t: TestContext, url: string) {
  const client = new Redis(url, { enableReadyCheck: false });
  await client.ping();
  const monitor = await client.monitor();
  for (const each of [client, monitor]) {
    each.on('error', () => {}); // Redis ends before this connection
    t.after(() => each.disconnect());
  }
  const commands: { readonly atSeconds: number; readonly args: readonly string[] }[] = [];
  monitor.on('monitor', (at: string, args: readonly string[]) => {
    commands.push({ atSeconds: Number(at), args });
  });
  /** Without those of the contract report: it is written every five seconds, to slices of days. */
  const flushes = () =>
    commands.filter(({ args }) => args.includes('appendToLog') && !args.some(isOfContractReport));
  /** Health checks: they show that time passes for the gateway. */
  const healthChecks = () => commands.filter(({ args: [name] }) => name?.toLowerCase() === 'info');
  return { client, flushes, healthChecks };
}

function isOfContractReport(argument: string): boolean {
  const [, slice] = /requests:\{(\d+)\}/.exec(argument) ?? [];
  return Number(slice) >= sliceOfDay(0);
}

describe('the records of requests on Redis', { skip: skipWithoutRedisServer }, () => {
  test('cost at most one operation per second, and one more for 100 requests', async (t) => {
    const { url } = await startRedis(t);
    const { gateway } = await startGatewayWithBank(t, { state: { redis: url } });
    const { flushes } = await monitorRedis(t, url);
    const batches = 12;
    for (let batch = 0; batch < batches; batch++) {
      await Promise.all(Array.from({ length: 100 }, () => send(gateway)));
      const before = flushes().length;
      await until(10_000, 'a flush', () => flushes().length > before);
    }
    const all = flushes().map(({ atSeconds }) => atSeconds);
    const seconds = (all.at(-1) ?? 0) - (all[0] ?? 0);
    const most = seconds + 1 + (100 * batches) / 100;
    assert.ok(all.length <= most, `${all.length} operations: ${all.join(' ')}`);
    assert.equal((await search(gateway, { limit: '500' })).requests.length, 500);
  });

  test('cost nothing while there are no requests', async (t) => {
    const { url } = await startRedis(t);
    const { gateway } = await startGatewayWithBank(t, { state: { redis: url } });
    await send(gateway);
    const { client, flushes, healthChecks } = await monitorRedis(t, url);
    const hasRecords = async () => (await client.keys('*:chunks')).length === 1;
    await until(10_000, 'the record is stored', hasRecords);
    const before = flushes().length;
    const start = healthChecks().length;
    await until(20_000, 'three seconds', () => healthChecks().length >= start + 12);
    assert.ok(flushes().length <= before + 1, 'only the figures of the last second');
  });

  test('contain no payment id and no content, and all of them expire', async (t) => {
    const { url } = await startRedis(t);
    const { gateway } = await startGatewayWithBank(t, { state: { redis: url } });
    const paid = await call(gateway.url, { ...initiation, requestId: randomUUID() });
    const paymentId = String(jsonOf(paid).paymentId);
    await call(gateway.url, {
      method: 'GET',
      path: `${transfersPath}/${paymentId}`,
      requestId: randomUUID(),
    });
    assert.equal((await search(gateway, { payment: paymentId })).requests.length, 2);

    const { client, flushes } = await monitorRedis(t, url);
    const keys = await client.keys('*requests:*');
    assert.ok(keys.some((key) => key.endsWith(':chunks')) && keys.some((key) => key.includes(':index:')));
    let text = '';
    for (const key of keys) {
      assert.ok((await client.pttl(key)) > 0, key);
      const isHash = (await client.type(key)) === 'hash';
      const stored = isHash ? Object.values(await client.hgetallBuffer(key)) : [await client.getBuffer(key)];
      for (const bytes of stored) text += bytes?.toString('latin1') ?? '';
    }
    assert.match(text, /initiatePayment/);
    for (const secret of [paymentId, 'DE40', '192.168.8.78', 'Merchant123'])
      assert.ok(!text.includes(secret), secret);
    assert.equal(flushes().length, 0);
  });

  test('are encrypted where a key is configured, and found nevertheless', async (t) => {
    const { url } = await startRedis(t);
    const file = join(temporaryFolder(t), 'keys');
    writeFileSync(file, `${randomBytes(32).toString('hex')}\n`);
    const { gateway } = await startGatewayWithBank(t, { state: { redis: url, encryptionKeyFile: file } });
    const requestId = randomUUID();
    await call(gateway.url, { method: 'GET', path: unknownPayment, requestId });
    const found = await search(gateway, { requestId });
    assert.deepEqual(
      found.requests.map(({ xRequestId }) => xRequestId),
      [requestId],
    );
    const { client } = await monitorRedis(t, url);
    for (const key of await client.keys('*requests:*')) {
      const isHash = (await client.type(key)) === 'hash' && !key.endsWith(':counters');
      const stored = isHash ? Object.values(await client.hgetallBuffer(key)) : [];
      for (const bytes of stored) {
        assert.ok(!bytes.includes('getPaymentStatus') && !bytes.includes('PAYMENT_UNKNOWN'), key);
        assert.ok(!bytes.includes(Buffer.from(requestId.replaceAll('-', ''), 'hex')), key);
      }
    }
  });

  test('wait while Redis does not answer, and no request fails because of them', async (t) => {
    const redis = await startRedis(t);
    const { gateway } = await startGatewayWithBank(t, {
      state: { ...impatientState, redis: redis.url },
    });
    assert.equal((await send(gateway)).status, 404);
    redis.freeze();
    const path = '/nowhere'; // a request that does not need Redis
    const ids: string[] = [];
    for (let count = 0; count < 300; count++) {
      const requestId = randomUUID();
      ids.push(requestId);
      assert.equal((await call(gateway.url, { method: 'GET', path, requestId })).status, 404);
    }
    const [id = ''] = ids;
    const explained = await callAdminApi(gateway, 'GET', `/api/decisions/${id}`);
    assert.equal(explained.status, 200, 'this instance knows its recent requests');
    assert.equal((await callAdminApi(gateway, 'GET', '/api/search?tenant=nobody')).status, 503);

    redis.thaw();
    const storedIds = async () => {
      const reply = await callAdminApi(gateway, 'GET', '/api/search?error=PATH_UNKNOWN&limit=500');
      return reply.status === 200
        ? JSON.parse(reply.text).requests.map(({ xRequestId }: { xRequestId: string }) => xRequestId)
        : [];
    };
    await until(20_000, 'all records are stored', async () => (await storedIds()).length === ids.length);
    assert.deepEqual(new Set(await storedIds()), new Set(ids));
  });
});
