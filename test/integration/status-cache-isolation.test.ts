/** Isolation: callers that differ in tenant, token, PSU, consent, format or coding never get each other's responses. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
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

/** Each tenant has a payment with this id, at another bank; each response names the caller. */
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
  const sandbox = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
  const environments = {
    ...{ active: 'sandbox', sandbox },
    production: { ...sandbox, baseUrl: `${bank.baseUrl}/other` },
  };
  const sections = { environments, clients: clientSettings() };
  const instances = await startInstances(t, bank, redisUrl, sections);
  for (const [client, environment] of [
    ['shop', 'sandbox'],
    ['rival', 'production'],
  ] as const) {
    const named: readonly Field[] = [
      ['X-API-Key', apiKeyOf(client)],
      ['Penstock-Environment', environment],
    ];
    const created = await call(instances[0].url, {
      ...initiation,
      headers: [...initiation.headers, ...named],
    });
    assert.equal(created.status, 201, created.text);
  }
  return { bank, instances };
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
