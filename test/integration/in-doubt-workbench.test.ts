/** Operators work through the requests in doubt of all instances: filters, export, and the confirmation in production. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { startInstances } from '../kit/instances.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import { withEnvironmentHeader } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

interface Listed {
  readonly id: string;
  readonly xRequestId: string;
  readonly environment: string;
}

/** Two instances with a bank that answers the next writes with 504, in sandbox and production. */
async function startInDoubt(t: TestContext) {
  const bank: { response: StubResponse } = { response: { status: 504 } };
  const stub = await startStubBank(t, () => bank.response);
  const instances = await startInstances(t, stub, await sharedRedisUrl(t), {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: `${stub.baseUrl}/sandbox` },
      production: { baseUrl: `${stub.baseUrl}/production` },
    },
    deadlines: { connect: '1s', write: '2s' },
    idempotency: { lateAnswer: '0s' },
  });
  const [one, other] = instances;
  const send = async (environment: string, request: Call = initiation, requestId: string = randomUUID()) => {
    const reply = await call(one.url, { ...withEnvironmentHeader(environment, request), requestId });
    return { requestId, reply };
  };
  const put = async (environment: string, request?: Call) => {
    const { requestId, reply } = await send(environment, request);
    assert.equal(reply.status, 504, reply.text);
    return requestId;
  };
  const list = async (query: string): Promise<readonly Listed[]> =>
    listOf(await callAdminApi(other, 'GET', `/api/in-doubt?${query}`));
  return { bank, requests: stub.requests, one, other, send, put, list };
}

const listOf = ({ status, text }: Reply) => {
  assert.equal(status, 200, text);
  return JSON.parse(text);
};

const cancellation: Call = { method: 'DELETE', path: `${transfersPath}/a-payment` };

test('lists and exports the requests in doubt that match a filter, on an instance that did not send them', {
  skip: skipWithoutRedis,
}, async (t) => {
  const { other, put, list } = await startInDoubt(t);
  const initiated = await put('sandbox');
  const cancelled = await put('sandbox', cancellation);
  const live = await put('production');
  const all = [initiated, cancelled, live];

  for (const [query, expected] of [
    ['', all],
    ['environment=production', [live]],
    ['environment=sandbox&operation=cancelPayment', [cancelled]],
    [`requestId=${initiated.toUpperCase()}`, [initiated]],
    ['tenant=anonymous&olderThan=1ms', all],
    ['olderThan=1h', []],
    ['tenant=nobody', []],
    ['why=504', all],
  ] as const) {
    const found = (await list(query)).map(({ xRequestId }) => xRequestId);
    assert.deepEqual(found.toSorted(), [...expected].toSorted(), query);
  }
  for (const query of ['operation=getPayment', 'olderThan=10', 'enviroment=sandbox', 'tenant=a&tenant=b'])
    assert.equal((await callAdminApi(other, 'GET', `/api/in-doubt?${query}`)).status, 400, query);

  const csv = await callAdminApi(other, 'GET', '/api/in-doubt/export?environment=production');
  assert.equal(csv.header('Content-Type'), 'text/csv; charset=utf-8');
  assert.match(
    csv.header('Content-Disposition') ?? '',
    /^attachment; filename="penstock-in-doubt-\d{8}T\d{6}Z\.csv"$/,
  );
  const [head, line, end, ...more] = csv.text.split('\r\n');
  assert.equal(
    head,
    '"since","xRequestId","operation","paymentId","environment","tenant","why","lateAnswerUntil","id","severity"',
  );
  assert.ok(
    line?.includes(`"${live}","initiatePayment","","production","anonymous","the bank answered 504"`),
    line,
  );
  assert.deepEqual([end, more], ['', []]);

  const json = await callAdminApi(other, 'GET', '/api/in-doubt/export?format=json&environment=production');
  assert.match(json.header('Content-Disposition') ?? '', /\.json"$/);
  assert.deepEqual(listOf(json), await list('environment=production'));
});

test('resolves a payment as did-not-happen only with the name of production, and then sends its repeat', {
  skip: skipWithoutRedis,
}, async (t) => {
  const { bank, requests, other, send, put, list } = await startInDoubt(t);
  const [live, trial] = [await put('production'), await put('sandbox')];
  const resolve = async (requestId: string, more: object) => {
    const [found] = await list(`requestId=${requestId}`);
    const body = { outcome: 'did-not-happen', reason: 'the bank, ticket 4711', ...more };
    return callAdminApi(other, 'POST', `/api/in-doubt/${found?.id}`, body);
  };
  for (const more of [{}, { confirm: 'Production' }, { confirm: 'sandbox' }]) {
    const refused = await resolve(live, more);
    assert.equal(refused.status, 409, refused.text);
    assert.match(refused.text, /confirm must be \\"production\\"/);
  }
  bank.response = { status: 201, body: '{"paymentId":"second-attempt"}' };
  const sentBefore = requests.length;
  assert.equal((await send('production', initiation, live)).reply.status, 504, 'still in doubt');
  assert.equal(requests.length, sentBefore);

  for (const [requestId, environment, more] of [
    [live, 'production', { confirm: 'production' }],
    [trial, 'sandbox', {}],
  ] as const) {
    await until(10_000, 'the response of the bank can no longer arrive', async () => {
      const { status, text } = await resolve(requestId, more);
      if (status === 409) assert.match(text, /The bank may still execute the request/);
      return status === 200;
    });
    const { reply } = await send(environment, initiation, requestId);
    assert.equal(jsonOf(reply).paymentId, 'second-attempt');
  }
  assert.equal(requests.length, sentBefore + 2);
});

test('refuses a paymentId that was copied with spaces, or is blank, because a resolution is final', {
  skip: skipWithoutRedis,
}, async (t) => {
  const { other, put, list } = await startInDoubt(t);
  const [found] = await list(`requestId=${await put('sandbox')}`);
  for (const paymentId of ['p1 ', ' p1', ' ', '']) {
    const body = { outcome: 'happened', paymentId, reason: 'the bank, ticket 4711' };
    const { status, text } = await callAdminApi(other, 'POST', `/api/in-doubt/${found?.id}`, body);
    assert.deepEqual([status, /without spaces around it/.test(text)], [400, true], text);
  }
  assert.equal((await list('')).length, 1, 'it is still in doubt');
});
