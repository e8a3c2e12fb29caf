/**
 * A bank that recognises repeats by X-Request-ID does not know the tenants of the gateway: it answers a second tenant with the
 * payment of the first one. Two instances on one Redis, each serving one of the tenants.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { startInstances } from '../kit/instances.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

const paymentOf = (paymentId: string): StubResponse => ({
  status: 201,
  headers: [['Content-Type', 'application/json']],
  body: JSON.stringify({ transactionStatus: 'RCVD', paymentId }),
});

const refusal: StubResponse = { status: 400 };

/** @param responses of the bank to initiations, in order */
async function startPair(t: TestContext, responses: readonly (StubResponse | Promise<StubResponse>)[]) {
  let initiations = 0;
  const bank = await startStubBank(t, ({ method }) =>
    method === 'POST' ? (responses[initiations++] ?? refusal) : { status: 200 },
  );
  const [shops, rivals] = await startInstances(t, bank, await redis(), {
    clients: clientSettings(),
    idempotency: { wait: '50ms' },
  });
  const requestId = randomUUID();
  const send = (client: ClientName, { headers = [], ...rest }: Call = { ...initiation, requestId }) =>
    call((client === 'shop' ? shops : rivals).url, {
      ...rest,
      headers: [...headers, ['X-API-Key', apiKeyOf(client)]],
    });
  const read = async (client: ClientName) =>
    outcomeOf(await send(client, { method: 'GET', path: `${transfersPath}/a-payment` }));
  return { shops, rivals, requestId, send, read, initiationCount: () => initiations };
}

type Pair = Awaited<ReturnType<typeof startPair>>;

/** That the rival got nothing of the payment, that its request is in doubt, and that it is not an owner. */
async function assertWithheld({ rivals, requestId, send, read }: Pair, reply: Reply): Promise<void> {
  assert.equal(outcomeOf(reply), '504 OUTCOME_UNKNOWN');
  assert.doesNotMatch(reply.text, /a-payment/);
  assert.equal(outcomeOf(await send('rival')), '409 DUPLICATE_IN_DOUBT');
  assert.equal(await read('rival'), '404 PAYMENT_UNKNOWN');
  const { text } = await callAdminApi(rivals, 'GET', '/api/in-doubt');
  assert.match(text, new RegExp(`"xRequestId":"${requestId}","[^}]*"tenant":"rival"`));
  const metrics = parsePrometheus((await callAdminApi(rivals, 'GET', '/metrics')).text);
  const samples = metrics.get('penstock_withheld_responses_total')?.samples;
  assert.deepEqual(
    samples?.map(({ labels, value }) => [labels.environment, value]),
    [['sandbox', 1]],
  );
}

const payment = paymentOf('a-payment');
const location = [['Location', '/v1/payments/sepa-credit-transfers/a-payment']] as const;

describe('of two tenants with the same X-Request-ID, each on its own instance', {
  skip: skipWithoutRedis,
}, () => {
  for (const [name, first, outcome] of [
    ['has got the payment', payment, '201'],
    ['is in doubt', { status: 504 }, '504'],
    ['has got a response that names no payment', { status: 201, body: '{}' }, '201'],
    ['has got the payment with a 401 and a Location', { status: 401, headers: location }, '401'],
    ['has got the payment with a 429 and a Location', { status: 429, headers: location }, '429'],
  ] as const)
    test(`the second one gets OUTCOME_UNKNOWN if the bank names a payment, and the first one ${name}`, async (t) => {
      const pair = await startPair(t, [first, payment]);
      assert.equal(outcomeOf(await pair.send('shop')), outcome);
      await assertWithheld(pair, await pair.send('rival'));
      assert.equal(
        await pair.read('shop'),
        name.startsWith('has got the payment') ? '200' : '404 PAYMENT_UNKNOWN',
      );
    });

  test('the second one gets OUTCOME_UNKNOWN while the first one is in flight, which then gets its payment', async (t) => {
    const { promise, resolve } = Promise.withResolvers<StubResponse>();
    const pair = await startPair(t, [promise, payment]);
    const first = pair.send('shop');
    await until(5_000, 'the bank receives the first request', () => pair.initiationCount() === 1);
    await assertWithheld(pair, await pair.send('rival'));
    resolve(payment);
    assert.equal(outcomeOf(await first), '201');
    assert.deepEqual([await pair.read('shop'), await pair.read('rival')], ['200', '404 PAYMENT_UNKNOWN']);
  });

  test('the second one cannot make a payment of the first one its own by an operator who names it', async (t) => {
    const pair = await startPair(t, [payment, payment]);
    await pair.send('shop');
    await assertWithheld(pair, await pair.send('rival'));
    const listed = jsonOf(await callAdminApi(pair.rivals, 'GET', '/api/in-doubt')) as unknown as {
      id: string;
    }[];
    const resolution = { outcome: 'happened', paymentId: 'a-payment', reason: 'a mistake' };
    const refused = await callAdminApi(pair.rivals, 'POST', `/api/in-doubt/${listed[0]?.id}`, resolution);
    assert.equal(refused.status, 409, refused.text);
    assert.equal(await pair.read('rival'), '404 PAYMENT_UNKNOWN');
  });

  for (const [name, first, second] of [
    ['the bank has made two payments', payment, paymentOf('another')],
    ['the bank has refused the first one', refusal, payment],
    ['the bank has refused the token of the first one', { status: 401 }, payment],
  ] as const)
    test(`both get the response of the bank if ${name}`, async (t) => {
      const { send } = await startPair(t, [first, second]);
      const replies = [await send('shop'), await send('rival')];
      assert.deepEqual(replies.map(outcomeOf), [String(first.status), '201']);
    });

  test('one at most gets the payment if both send at once', async (t) => {
    const { send } = await startPair(t, [payment, payment]);
    const outcomes = (await Promise.all([send('shop'), send('rival')])).map(outcomeOf);
    assert.deepEqual(outcomes.toSorted(), ['201', '504 OUTCOME_UNKNOWN']);
  });
});

test('a tenant gets OUTCOME_UNKNOWN if the bank names a payment of another tenant for another X-Request-ID', {
  skip: skipWithoutRedis,
}, async (t) => {
  const pair = await startPair(t, [payment, payment]);
  assert.equal(outcomeOf(await pair.send('shop', initiation)), '201');
  await assertWithheld(pair, await pair.send('rival'));
  assert.equal(await pair.read('shop'), '200');
});
