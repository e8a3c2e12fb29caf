/** Quotas of clients, which all instances count together. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { valuesOf } from '../kit/fields.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, statusRead } from '../kit/request.ts';
import {
  apiKeyOf,
  clientSettings,
  startTwoEnvironments,
  withEnvironmentHeader,
} from '../kit/two-environments.ts';

/** The clients of the first tenant may send two requests, and then one per hour. */
const limited = clientSettings().map((client) =>
  client.tenant === 'shop' ? { ...client, quota: { rate: '1/h', burst: 2 } } : client,
);
const byShop = { ...statusRead, headers: [['X-API-Key', apiKeyOf('shop')]] } as const;

describe('a client with a quota', () => {
  test('is refused when its quota is used up, and the bank receives nothing', async (t) => {
    const { send, callCounts } = await startTwoEnvironments(t, { clients: limited });
    for (const left of [1, 0]) {
      const reply = await send('shop', initiation);
      assert.equal(reply.status, 201);
      assert.match(reply.header('RateLimit') ?? '', new RegExp(`^"default";r=${left};t=\\d+$`));
      assert.deepEqual(valuesOf(reply.fields, 'RateLimit-Policy'), ['"default";q=2;w=7200']);
    }
    const reply = await send('shop', initiation);
    assertRefused(reply, 429, 'QUOTA_EXCEEDED', 'ACCESS_EXCEEDED');
    assert.match(reply.header('RateLimit') ?? '', /^"default";r=0;t=\d+$/);
    assert.ok(Number(reply.header('Retry-After')) > 3_500);
    assert.deepEqual(callCounts(), [2, 0]);
  });

  test('does not use the quota of another client of its tenant', async (t) => {
    const { send } = await startTwoEnvironments(t, { clients: limited });
    for (let one = 0; one < 3; one++) await send('shop', initiation);
    assert.equal((await send('till', initiation)).status, 201);
    const free = await send('rival', initiation);
    assert.deepEqual([free.status, free.header('RateLimit')], [201, undefined]);
  });

  test('is not charged for requests that are refused before the quota check', async (t) => {
    const { send } = await startTwoEnvironments(t, { clients: limited, listen: { maxBody: '64KiB' } });
    for (let one = 0; one < 3; one++) {
      const reply = await send('till', withEnvironmentHeader('production', initiation));
      assert.deepEqual([reply.status, reply.header('RateLimit')], [403, undefined]);
    }
    const large = await send('till', { ...initiation, body: 'x'.repeat(70_000) });
    assert.equal(large.status, 413);
    assert.match(large.header('RateLimit') ?? '', /^"default";r=1;/);
    await send('till', initiation);
    const both = await send('till', { ...initiation, body: 'x'.repeat(70_000) });
    assertRefused(both, 429, 'QUOTA_EXCEEDED', 'ACCESS_EXCEEDED');
  });

  test("gets the RateLimit fields of the gateway instead of the bank's", async (t) => {
    const bank = await startBank(t);
    const headers = { RateLimit: '"bank";r=7;t=1', 'RateLimit-Policy': '"bank";q=9' };
    bank.injectFault({ name: 'status', status: 200, headers, body: '{}' });
    const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } };
    const gateway = await startGateway(t, { environments, clients: limited });
    const own = await call(gateway.url, {
      ...initiation,
      headers: [...(initiation.headers ?? []), ...byShop.headers],
    });
    assert.deepEqual(valuesOf(own.fields, 'RateLimit-Policy'), ['"default";q=2;w=7200']);
    const other = [['X-API-Key', apiKeyOf('rival')]] as const;
    const free = await call(gateway.url, {
      ...initiation,
      headers: [...(initiation.headers ?? []), ...other],
    });
    assert.deepEqual(valuesOf(free.fields, 'RateLimit-Policy'), ['"bank";q=9']);
  });
});

test('two instances count the requests of a client together', { skip: skipWithoutRedis }, async (t) => {
  const bank = await startBank(t);
  const url = await sharedRedisUrl(t);
  const instances = await startInstances(t, bank, url, { clients: limited });
  const statuses = [];
  for (let one = 0; one < 4; one++) {
    const { header } = await call(instances[one % 2 === 0 ? 0 : 1].url, byShop);
    statuses.push(header('Penstock-Error') === 'QUOTA_EXCEEDED' ? 'refused' : 'counted');
  }
  assert.deepEqual(statuses, ['counted', 'counted', 'refused', 'refused']);
});
