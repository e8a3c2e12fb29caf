/** One X-Request-ID has one effect at the bank, counted at the bank. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { call, type Reply } from '../kit/call.ts';
import { shortDeadlines, startGatewayWithBank } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const initiationWithId = (requestId: string, body: string = initiation.body) => ({
  ...initiation,
  headers: [['X-Request-ID', requestId] as const, ...initiation.headers],
  body,
});
const errorOf = (reply: Reply) => reply.header('Penstock-Error');

describe('a repeated initiation', () => {
  test('makes one payment if a hundred equal requests arrive at once, and ninety-nine responses are replays', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const payment = initiationWithId(randomUUID());
    const replies = await Promise.all(Array.from({ length: 100 }, () => call(gateway.url, payment, agent)));

    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([201]));
    assert.equal(new Set(replies.map(({ text }) => text)).size, 1);
    assert.equal(replies.filter((reply) => reply.header('Idempotent-Replayed') === 'true').length, 99);
    assert.equal(bank.requests.length, 1);
    assert.equal(bank.payments.length, 1);
  });

  test('is recognized if its X-Request-ID has another letter case', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const id = randomUUID();
    await call(gateway.url, initiationWithId(id));
    const repeat = await call(gateway.url, initiationWithId(id.toUpperCase()));
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
    assert.equal(repeat.header('X-Request-ID'), id.toUpperCase());
    assert.equal(bank.payments.length, 1);
  });

  test('is refused if it has another body', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const id = randomUUID();
    await call(gateway.url, initiationWithId(id));
    const repeat = await call(gateway.url, initiationWithId(id, initiation.body.replace('123', '124')));
    assert.equal(repeat.status, 409);
    assert.equal(errorOf(repeat), 'DUPLICATE_MISMATCH');
    assert.equal(bank.requests.length, 1);
  });

  test('is recognized if it has another access token', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const payment = initiationWithId(randomUUID());
    const withToken = (token: string) => ({
      ...payment,
      headers: [...payment.headers, ['Authorization', token] as const],
    });
    await call(gateway.url, withToken('Bearer old'));
    const repeat = await call(gateway.url, withToken('Bearer new'));
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.payments.length, 1);
  });

  test('gets the stored response if the bank refused the payment', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'status', status: 403 }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    const [first, repeat] = [await call(gateway.url, payment), await call(gateway.url, payment)];
    assert.deepEqual([first.status, repeat.status], [403, 403]);
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.requests.length, 1);
  });

  test('is sent again after status 429', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'too-many-requests' }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    const [first, repeat] = [await call(gateway.url, payment), await call(gateway.url, payment)];
    assert.deepEqual([first.status, repeat.status], [429, 201]);
    assert.equal(repeat.header('Idempotent-Replayed'), undefined);
  });

  test('is sent again with a fresh token after status 401', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'status', status: 401 }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    const withToken = (token: string) => ({
      ...payment,
      headers: [...payment.headers, ['Authorization', token] as const],
    });
    const first = await call(gateway.url, withToken('Bearer expired'));
    const repeat = await call(gateway.url, withToken('Bearer fresh'));
    assert.deepEqual([first.status, repeat.status], [401, 201]);
    assert.equal(repeat.header('Idempotent-Replayed'), undefined);
    assert.equal(bank.payments.length, 1);
  });

  test('gets DUPLICATE_IN_FLIGHT after the configured wait while the first request is running', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { idempotency: { wait: '100ms' } });
    bank.injectFault({ name: 'never-answer', strikes: 'before-effect' });
    const payment = initiationWithId(randomUUID());
    const first = call(gateway.url, payment);
    await bank.waitUntil(() => bank.requests.length === 1);
    const repeat = await call(gateway.url, payment);
    assert.equal(repeat.status, 409);
    assert.equal(errorOf(repeat), 'DUPLICATE_IN_FLIGHT');
    assert.equal(repeat.header('Retry-After'), '1');
    await bank.stop();
    assert.equal(errorOf(await first), 'OUTCOME_UNKNOWN');
    assert.equal(errorOf(await call(gateway.url, payment)), 'DUPLICATE_IN_DOUBT');
  });

  test('gets the response of the first request whose TPP disconnected', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'latency', ms: 100 });
    const payment = initiationWithId(randomUUID());
    const agent = new Agent();
    const disconnected = call(gateway.url, payment, agent);
    await bank.waitUntil(() => bank.requests.length === 1);
    agent.destroy();
    await assert.rejects(disconnected);
    const repeat = await call(gateway.url, payment);
    assert.equal(repeat.status, 201);
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.payments.length, 1);
  });
});

describe('a payment with unknown outcome', () => {
  test('is in doubt until the late response arrives, which repeats then get', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, shortDeadlines);
    bank.injectFault({ name: 'latency', ms: 600_000 }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    assert.equal(errorOf(await call(gateway.url, payment)), 'OUTCOME_UNKNOWN');
    assert.equal(errorOf(await call(gateway.url, payment)), 'DUPLICATE_IN_DOUBT');
    const [listed] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as Record<string, unknown>[];
    assert.equal(listed?.xRequestId, payment.headers[0]?.[1]);
    assert.equal(listed?.environment, 'sandbox');

    bank.endDelays();
    await until(3_000, 'the late response', async () => (await call(gateway.url, payment)).status === 201);
    assert.equal(bank.payments.length, 1);
    assert.deepEqual(await readAdminApi(gateway, '/api/in-doubt'), []);
    const status = { method: 'GET', path: `${transfersPath}/${bank.payments[0]?.paymentId}/status` };
    assert.equal((await call(gateway.url, status)).status, 200);
  });

  test('is listed if the bank responded with 5xx, and repeats get that response', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'status', status: 504 }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    const [first, repeat] = [await call(gateway.url, payment), await call(gateway.url, payment)];
    assert.deepEqual([first.status, repeat.status], [504, 504]);
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.requests.length, 1);
    assert.equal(((await readAdminApi(gateway, '/api/in-doubt')) as unknown as unknown[]).length, 1);
  });

  test('is named to repeats after an operator resolved it as happened', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'close-before-answering' }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    assert.equal(errorOf(await call(gateway.url, payment)), 'OUTCOME_UNKNOWN');
    const [{ id }] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as [{ id: string }];
    const paymentId = bank.payments[0]?.paymentId ?? '';
    const resolved = await callAdminApi(gateway, 'POST', `/api/in-doubt/${id}`, {
      outcome: 'happened',
      paymentId,
      reason: 'the bank found it',
    });
    assert.equal(resolved.status, 200);
    const repeat = await call(gateway.url, payment);
    assert.equal(errorOf(repeat), 'DUPLICATE_IN_DOUBT');
    assert.match(repeat.text, new RegExp(`${transfersPath}/${paymentId}/status`));
    const aboutRequests = gateway.logLines.filter((line) => line.includes('"message":"request failed"'));
    assert.doesNotMatch(aboutRequests.join(), new RegExp(paymentId));
    assert.deepEqual(await readAdminApi(gateway, '/api/in-doubt'), []);
  });

  test('is sent again by a repeat after it was resolved as did-not-happen, but not before the time for late responses has passed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, {
      ...shortDeadlines,
      idempotency: { ...shortDeadlines.idempotency, lateAnswer: '1s' },
    });
    bank.injectFault({ name: 'close-before-answering', strikes: 'before-effect' }, { times: 1 });
    const payment = initiationWithId(randomUUID());
    assert.equal(errorOf(await call(gateway.url, payment)), 'OUTCOME_UNKNOWN');
    const [{ id }] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as [{ id: string }];
    const resolve = (more: object = {}) =>
      callAdminApi(gateway, 'POST', `/api/in-doubt/${id}`, {
        outcome: 'did-not-happen',
        reason: 'the bank said so',
        ...more,
      });
    assert.equal((await resolve()).status, 409);
    assert.equal((await resolve({ paymentId: 'unexpected' })).status, 400);
    await until(3_000, 'the resolution is accepted', async () => (await resolve()).status === 200);
    assert.equal((await call(gateway.url, payment)).status, 201);
    assert.equal(bank.payments.length, 1);
  });
});
