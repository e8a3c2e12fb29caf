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
const isCollapsed = ({ header }: Reply) => header('Cache-Status') === 'penstock; fwd=miss; collapsed';

/** A list of objects in JSON. */
const jsonListOf = ({ text }: Reply): readonly Readonly<Record<string, unknown>>[] => JSON.parse(text);

/** Two instances that both serve two payments from the cache, in the first environment. */
async function startWithCachedPayments(t: TestContext, names: readonly string[] = ['sandbox']) {
  const bank = await startStubBank(t, () => statusResponse('ACCC'));
  const environments = {
    active: names[0],
    ...Object.fromEntries(names.map((name) => [name, { baseUrl: `${bank.baseUrl}/${name}` }])),
  };
  const instances = await startInstances(t, bank, await sharedRedisUrl(t), { environments });
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

  for (const query of ['?environment=production', '?environment=production&payment=one']) {
    test(`purges nothing of another environment: ${query}`, async (t) => {
      const environments = ['sandbox', 'production'] as const;
      const readIn = (instance: GatewayUnderTest, environment: string) =>
        call(instance.url, readOf('one', ['Penstock-Environment', environment]));
      const [here, there] = await startWithCachedPayments(t, environments);
      for (const environment of environments) await readIn(there, environment);
      assert.equal((await callAdminApi(here, 'DELETE', `/api/status-cache${query}`)).status, 204);
      await until(
        2_000,
        'production is purged on the other instance',
        async () => !isHit(await readIn(there, 'production')),
      );
      assert.ok(isHit(await readIn(there, 'sandbox')));
      assert.ok(isHit(await readIn(here, 'sandbox')));
    });
  }

  test('refuses an unknown environment and purges nothing', async (t) => {
    const [here] = await startWithCachedPayments(t);
    for (const query of ['?environment=sandbx', '?environment=sandbx&payment=one'])
      assert.equal((await callAdminApi(here, 'DELETE', `/api/status-cache${query}`)).status, 404);
    assert.ok(isHit(await read(here, 'one')));
    assert.deepEqual(jsonListOf(await callAdminApi(here, 'GET', '/api/audit')), []);
  });

  test('is recorded in the audit log, with what was purged and why', async (t) => {
    const [here] = await startWithCachedPayments(t);
    for (const query of ['?payment=one&environment=sandbox&reason=ticket%204711', ''])
      await callAdminApi(here, 'DELETE', `/api/status-cache${query}`);
    const records = jsonListOf(await callAdminApi(here, 'GET', '/api/audit'));
    assert.deepEqual(
      records.map(({ who, action, outcome, details }) => ({ who, action, outcome, details })),
      [
        { who: 'admin', action: 'purge status cache', outcome: 'done', details: {} },
        {
          ...{ who: 'admin', action: 'purge status cache', outcome: 'done' },
          details: { environment: 'sandbox', paymentId: 'one', reason: 'ticket 4711' },
        },
      ],
    );
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
  let gate = Promise.withResolvers<void>();
  let response: StubResponse | undefined = statusResponse('ACTC', {}, [['Cache-Control', 'max-age=0']]);
  const bank = await startStubBank(t, async ({ path }) => {
    if (path.includes('/slow-')) await gate.promise;
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
  // The second read of a pair joins the first one, unless it is looked up so late that the response has been stored.
  let pairs = 0;
  for (let joined = false; !joined; ) {
    assert.ok(++pairs < 20, 'no read joins another');
    gate = Promise.withResolvers<void>();
    const payment = `slow-${pairs}`;
    const both = [read(gateway, payment), read(gateway, payment)]; // miss, and shared or hit
    await until(5_000, 'the bank receives the read', () =>
      bank.requests.some(({ path }) => path.includes(`/${payment}/`)),
    );
    await call(gateway.url, readOf(payment, ['Cache-Control', 'only-if-cached']));
    gate.resolve();
    joined = (await Promise.all(both)).some(isCollapsed);
  }

  assert.deepEqual(await countersOf(gateway), {
    miss: 2 + pairs,
    stale: 1,
    hit: 2 + (pairs - 1),
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
    assert.match(key, /^test-[\w-]{36}:(status|environment|bucket|timeline|fleet):/);
    const stored = String(await redis.command('GET', key).catch(() => ''));
    for (const secret of secrets) assert.ok(!`${key} ${stored}`.includes(secret), `${secret} in ${key}`);
    if (!/:(status:secret|environment)/.test(key))
      assert.ok(Number(await redis.command('PTTL', key)) > 0, `${key} never expires`);
  }
});
