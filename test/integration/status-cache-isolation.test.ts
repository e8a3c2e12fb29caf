/** Isolation: callers that differ in tenant, token, PSU, consent, format or coding never get each other's responses. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { createAffinityStore } from '../../src/environments/affinity.ts';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { startInstances } from '../kit/instances.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { seededRuns } from '../kit/seeded-runs.ts';
import { type StubRequest, type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';

const caller = fc.record({
  client: fc.constantFrom('shop', 'rival'),
  fields: fc.record({
    Authorization: fc.constantFrom('Bearer one', 'Bearer two'),
    'PSU-ID': fc.constantFrom('anna', 'berta'),
    'Consent-ID': fc.constantFrom('1', '2'),
    Accept: fc.constantFrom('application/json', 'application/xml'),
    'Accept-Encoding': fc.constantFrom('identity', 'gzip'),
  }),
});
const names = ['authorization', 'psu-id', 'consent-id', 'accept', 'accept-encoding'];

/** Both tenants own the payment; each response names the caller. */
const respond = ({ method, header }: StubRequest): StubResponse => {
  const json = ['Content-Type', 'application/json'] as const;
  if (method === 'POST')
    return { status: 201, headers: [json], body: '{"paymentId":"twin","transactionStatus":"RCVD"}' };
  const body = { transactionStatus: 'ACTC', tenant: header('x-tenant'), generatedFor: names.map(header) };
  return { headers: [json], body: JSON.stringify(body) };
};

async function startPair(t: TestContext) {
  const bank = await startStubBank(t, respond);
  const redisUrl = await sharedRedisUrl(t);
  const prefix = `test-${randomUUID()}:`;
  const instances = await startInstances(t, bank, redisUrl, { clients: clientSettings() }, prefix);
  const headers = [...initiation.headers, ['X-API-Key', apiKeyOf('shop')] as const];
  assert.equal((await call(instances[0].url, { ...initiation, headers })).status, 201);
  await recordSecondOwner(t, redisUrl, prefix);
  return { bank, instances };
}

/** As an earlier release did, which let a payment have two owners. */
async function recordSecondOwner(t: TestContext, redisUrl: string, prefix: string): Promise<void> {
  const state = redisStateFactory(redisUrl, prefix)();
  t.after(() => state.close());
  await state.open();
  const { recordEnvironment } = createAffinityStore(state, 60_000, assert.fail);
  await recordEnvironment('twin', { environment: 'sandbox', tenant: 'rival' }, 'expiring', () => false);
}

describe('status reads of one path on two instances', { skip: skipWithoutRedis }, () => {
  test('returns only responses that the bank generated for this caller', async (t) => {
    const { bank, instances } = await startPair(t);
    const reads = fc.array(fc.record({ caller, instance: fc.nat(1) }), { minLength: 20, maxLength: 40 });
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(reads, async (all) => {
        const checks = all.map(async ({ caller: { client, fields }, instance }) => {
          const headers: readonly Field[] = [
            ...Object.entries(fields),
            ['X-API-Key', apiKeyOf(client as 'shop' | 'rival')], // one of the two above
            ['X-Tenant', client],
          ];
          const path = `${transfersPath}/twin/status`;
          const reply = await call(instances[instance]?.url ?? '', { method: 'GET', path, headers });
          assert.equal(reply.status, 200, reply.text);
          const { tenant, generatedFor } = jsonOf(reply);
          assert.deepEqual({ tenant, generatedFor }, { tenant: client, generatedFor: Object.values(fields) });
          answered++;
        });
        await Promise.all(checks);
      }),
      seededRuns(t, 25),
    );
    const fetches = bank.requests.filter(({ method }) => method === 'GET').length;
    assert.ok(fetches < answered, 'no read was served from the cache');
  });
});
