/** Requests whose X-Request-ID was used before, with something changed, to two instances that share a Redis. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

const created: StubResponse = {
  status: 201,
  headers: [['Content-Type', 'application/json']],
  body: '{"transactionStatus":"RCVD","paymentId":"a-payment"}',
};

/** @param responses of the bank to the requests with a new X-Request-ID, in order; the last one is repeated */
async function startPair(t: TestContext, ...responses: readonly StubResponse[]) {
  let count = 0;
  const bank = await startStubBank(t, () => responses[Math.min(count++, responses.length - 1)] ?? created);
  const [one, other] = await startInstances(t, bank, await redis(), { clients: clientSettings() });
  const requestId = randomUUID();
  const sendTo =
    ({ url }: { readonly url: string }) =>
    (
      client: ClientName,
      headers: readonly Field[] = [],
      { headers: own = [], ...rest }: Call = initiation,
    ) => {
      const kept = own.filter(([name]) => !headers.some(([changed]) => changed === name));
      const all = [['X-API-Key', apiKeyOf(client)] as const, ...kept, ...headers];
      return call(url, { ...rest, requestId, headers: all });
    };
  return { bank, one: sendTo(one), other: sendTo(other) };
}

const unauthorised: StubResponse = { status: 401 };
const cancellation: Call = { method: 'DELETE', path: `${transfersPath}/a-payment`, headers: [] };

interface Row {
  readonly name: string;
  readonly first?: readonly Field[];
  readonly second?: readonly Field[];
  readonly secondCall?: Call;
  /** The bank's responses. */
  readonly responses?: readonly StubResponse[];
  readonly outcomes: readonly [string, string];
  readonly sent: number;
}

const rows: readonly Row[] = [
  {
    name: 'a repeat with a renewed token and consent gets the first response',
    first: [
      ['Authorization', 'Bearer old'],
      ['Consent-ID', 'old'],
    ],
    second: [
      ['Authorization', 'Bearer new'],
      ['Consent-ID', 'new'],
    ],
    outcomes: ['201', '201 replayed'],
    sent: 1,
  },
  ...['PSU-ID', 'PSU-ID-Type', 'PSU-Corporate-ID', 'PSU-Corporate-ID-Type'].map(
    (name): Row => ({
      name: `a request with another ${name} does not get the payment of the first one`,
      first: [[name, 'anna']],
      second: [[name, 'berta']],
      outcomes: ['201', '409 DUPLICATE_MISMATCH'],
      sent: 1,
    }),
  ),
  {
    name: 'a cancellation can use the X-Request-ID of the initiation',
    secondCall: cancellation,
    responses: [created, { status: 204 }],
    outcomes: ['201', '204'],
    sent: 2,
  },
  {
    name: 'a repeat with a fresh token is sent after the bank responded with 401',
    responses: [unauthorised, created],
    outcomes: ['401', '201'],
    sent: 2,
  },
  ...[401, 429].map(
    (status): Row => ({
      name: `a repeat gets the ${status} again if that one names a payment`,
      responses: [{ status, body: '{"paymentId":"a-payment"}' }],
      outcomes: [`${status}`, `${status} replayed`],
      sent: 1,
    }),
  ),
];

describe('with one X-Request-ID, first to one instance, then to the other', {
  skip: skipWithoutRedis,
}, () => {
  for (const { name, first, second, secondCall, responses = [created], outcomes, sent } of rows)
    test(name, async (t) => {
      const { bank, one, other } = await startPair(t, ...responses);
      const replies = [await one('shop', first), await other('shop', second, secondCall)];
      assert.deepEqual(replies.map(outcomeOf), outcomes);
      assert.equal(bank.requests.length, sent);
    });
});

test('a cancellation in doubt on one instance becomes "payment cancelled" when a read on the other shows CANC', {
  skip: skipWithoutRedis,
}, async (t) => {
  const cancelled: StubResponse = { headers: created.headers ?? [], body: '{"transactionStatus":"CANC"}' };
  const { bank, one, other } = await startPair(t, created, { status: 504 }, cancelled);
  await one('shop');
  assert.equal(outcomeOf(await one('shop', [], cancellation)), '504');
  assert.equal(outcomeOf(await other('shop', [], cancellation)), '504 replayed');
  const read: Call = { method: 'GET', path: `${transfersPath}/a-payment`, headers: [] };
  await until(10_000, 'a read resolves the cancellation', async () => {
    assert.equal(outcomeOf(await other('shop', [], read)), '200');
    return outcomeOf(await one('shop', [], cancellation)) === '409 DUPLICATE_IN_DOUBT';
  });
  assert.match((await one('shop', [], cancellation)).text, /The payment is cancelled/);
  assert.equal(bank.requests.filter(({ method }) => method === 'DELETE').length, 1);
});

test('an operator resolves through one instance all payments that the other one has put in doubt, with a preview', {
  skip: skipWithoutRedis,
}, async (t) => {
  const bank = await startStubBank(t, () => ({ status: 504 }));
  const environments = { active: 'production', production: { baseUrl: bank.baseUrl } };
  const [one, other] = await startInstances(t, bank, await redis(), { environments });
  const requestIds = [randomUUID(), randomUUID()];
  const send = (requestId: string) => call(one.url, { ...initiation, requestId });
  for (const requestId of requestIds) assert.equal(outcomeOf(await send(requestId)), '504');

  const path = '/api/in-doubt/preview?environment=production&why=504';
  const { selection, requests } = jsonOf(await callAdminApi(other, 'GET', path));
  assert.equal((requests as unknown[]).length, 2);
  const resolve = (more: object) => {
    const body = { environment: 'production', why: '504', selection, outcome: 'happened', reason: 'a test' };
    return callAdminApi(other, 'POST', '/api/in-doubt', { ...body, ...more });
  };
  assert.equal((await resolve({})).status, 409, 'production is not confirmed');
  assert.equal((await resolve({ confirm: 'production', selection: 'another' })).status, 409);
  const resolved = await resolve({ confirm: 'production' });
  assert.deepEqual(jsonOf(resolved), { resolved: 2, early: 0, gone: 0 });

  for (const requestId of requestIds)
    assert.equal(outcomeOf(await send(requestId)), '409 DUPLICATE_IN_DOUBT');
  const records = JSON.parse((await callAdminApi(one, 'GET', '/api/audit')).text) as {
    action: string;
    outcome: string;
  }[];
  assert.deepEqual(
    records.map(({ action, outcome }) => `${action}: ${outcome}`),
    [
      'resolve in-doubt requests: happened',
      'resolve in-doubt request: happened',
      'resolve in-doubt request: happened',
      'resolve in-doubt requests: refused',
      'resolve in-doubt requests: refused',
    ],
  );
});
