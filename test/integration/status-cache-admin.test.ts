/** The status cache for operators: the purge, the metrics, and what is readable in Redis. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, type Reply } from '../kit/call.ts';
import type { GatewayUnderTest } from '../kit/gateway.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { transfersPath } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

const readOf = (payment: string, ...headers: readonly (readonly [string, string])[]): Call => {
  return { method: 'GET', path: `${transfersPath}/${payment}/status`, headers };
};
const read = ({ url }: Pick<GatewayUnderTest, 'url'>, payment: string) => call(url, readOf(payment));
const isHit = ({ header }: Reply) => header('Cache-Status')?.startsWith('penstock; hit;') === true;

/** Two instances that both serve two payments from the cache. */
async function startWithCachedPayments(t: TestContext) {
  const bank = await startStubBank(t, () => statusResponse('ACCC'));
  const instances = await startInstances(t, bank, await sharedRedisUrl(t));
  for (const instance of instances) {
    for (const payment of ['one', 'two']) await read(instance, payment);
  }
  assert.equal(bank.requests.length, 2);
  return instances;
}

describe('DELETE /api/status-cache', { skip: skipWithoutRedis }, () => {
  for (const query of ['', '?environment=sandbox']) {
    test(`purges all payments on both instances: ${query || 'without parameters'}`, async (t) => {
      const [here, there] = await startWithCachedPayments(t);
      assert.equal((await callAdminApi(here, 'DELETE', `/api/status-cache${query}`)).status, 204);
      assert.ok(!isHit(await read(here, 'one')));
      await until(
        2_000,
        'the other instance has refreshed the secret',
        async () => !isHit(await read(there, 'two')),
      );
    });
  }

  for (const query of ['?payment=one', '?payment=one&environment=sandbox']) {
    test(`purges one payment on both instances: ${query}`, async (t) => {
      const [here, there] = await startWithCachedPayments(t);
      assert.equal((await callAdminApi(here, 'DELETE', `/api/status-cache${query}`)).status, 204);
      assert.ok(!isHit(await read(there, 'one')));
      assert.ok(isHit(await read(there, 'two')));
    });
  }

  test('does not purge a payment of another environment', async (t) => {
    const [here, there] = await startWithCachedPayments(t);
    await callAdminApi(here, 'DELETE', '/api/status-cache?payment=one&environment=production');
    assert.ok(isHit(await read(there, 'one')));
  });

  for (const query of ['?paymnet=one', '?payment=', '?payment=one&payment=two']) {
    test(`refuses invalid parameters and purges nothing: ${query}`, async (t) => {
      const [here] = await startWithCachedPayments(t);
      assert.equal((await callAdminApi(here, 'DELETE', `/api/status-cache${query}`)).status, 400);
      assert.ok(isHit(await read(here, 'one')));
    });
  }
});

/** The counters of status reads by cache verdict. */
async function countersOf({ adminUrl }: GatewayUnderTest): Promise<Readonly<Record<string, number>>> {
  const { status, text, header } = await call(adminUrl, { method: 'GET', path: '/metrics' });
  assert.equal(status, 200);
  assert.match(header('Content-Type') ?? '', /^text\/plain; version=/);
  const sample = /^(\w+)\{operation="getPaymentStatus",environment="sandbox",verdict="(\w+)"\} (\d+)$/;
  const lines = text.split('\n').filter((line) => line.startsWith('penstock_status_reads_total'));
  return Object.fromEntries(
    lines.map((line) => {
      const [, , verdict = '', count] = sample.exec(line) ?? assert.fail(line);
      return [verdict, Number(count)];
    }),
  );
}

test('counts status reads by cache verdict in /metrics', { skip: skipWithoutRedis }, async (t) => {
  const gate = Promise.withResolvers<void>();
  let response: StubResponse | undefined = statusResponse('ACTC', {}, [['Cache-Control', 'max-age=0']]);
  const bank = await startStubBank(t, async ({ path }) => {
    if (path.includes('/slow/')) await gate.promise;
    return response ?? { status: 503 };
  });
  const [gateway] = await startInstances(t, bank, await sharedRedisUrl(t));
  assert.deepEqual(await countersOf(gateway), {});

  await read(gateway, 'one'); // miss
  response = undefined;
  await read(gateway, 'one'); // stale
  response = statusResponse('ACCC');
  await read(gateway, 'two'); // miss
  await read(gateway, 'two'); // hit
  await read(gateway, 'two'); // hit
  await call(gateway.url, readOf('two', ['Cache-Control', 'no-cache'])); // request
  await call(gateway.url, readOf('two', ['Signature', 'a'])); // bypass
  const both = [read(gateway, 'slow'), read(gateway, 'slow')]; // miss and shared
  await until(5_000, 'the bank receives the read', () =>
    bank.requests.some(({ path }) => path.includes('/slow/')),
  );
  await call(gateway.url, { method: 'GET', path: '/' }); // the gateway has read the second one by then
  gate.resolve();
  await Promise.all(both);

  assert.deepEqual(await countersOf(gateway), {
    miss: 3,
    stale: 1,
    hit: 2,
    request: 1,
    bypass: 1,
    shared: 1,
  });
});

test('stores no credentials and no personal data readably in Redis', {
  skip: skipWithoutRedisServer,
}, async (t) => {
  const redis = await startRedis(t);
  const bank = await startStubBank(t, () => statusResponse('ACTC'));
  const [gateway] = await startInstances(t, bank, redis.url);
  const secrets = ['payment-42', 'token-42', 'anna-42', 'consent-42'];
  const headers = [
    ['Authorization', 'Bearer token-42'],
    ['PSU-ID', 'anna-42'],
    ['Consent-ID', 'consent-42'],
  ] as const;
  assert.equal((await call(gateway.url, readOf('payment-42', ...headers))).status, 200);

  const keys = (await redis.command('KEYS', '*')) as readonly string[]; // as Redis documents it
  assert.ok(keys.some((key) => /^test-[\w-]{36}:status:[\w-]{43}$/.test(key)));
  for (const key of keys) {
    assert.match(key, /^test-[\w-]{36}:(identities$|(status|environment|payment|audit|ledger|bucket):)/);
    const stored = String(await redis.command('GET', key).catch(() => ''));
    for (const secret of secrets) assert.ok(!`${key} ${stored}`.includes(secret), `${secret} in ${key}`);
    if (!/:(status:secret|environment|identities$|ledger:holders$|ledger:epoch$)/.test(key))
      assert.ok(Number(await redis.command('PTTL', key)) > 0, `${key} never expires`);
  }
});
