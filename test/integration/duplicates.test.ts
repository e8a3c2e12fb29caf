/** One X-Request-ID, one effect at the bank: repeats of every kind, counted at the bank. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { describe, test } from 'node:test';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { call, type Reply } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { initiation, transfers } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const withId = (requestId: string, body: string = initiation.body) => ({
  ...initiation,
  headers: [['X-Request-ID', requestId] as const, ...initiation.headers],
  body,
});
const errorOf = (reply: Reply) => reply.header('Penstock-Error');

describe('an X-Request-ID that comes again', () => {
  test('a hundred times at once is one payment: a hundred equal answers, ninety-nine of them replayed', async (t) => {
    const { bank, gateway } = await startLine(t);
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const one = withId(randomUUID());
    const replies = await Promise.all(Array.from({ length: 100 }, () => call(gateway.url, one, agent)));

    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([201]));
    assert.equal(new Set(replies.map(({ text }) => text)).size, 1);
    assert.equal(replies.filter((reply) => reply.header('Idempotent-Replayed') === 'true').length, 99);
    assert.equal(bank.requests.length, 1);
    assert.equal(bank.payments.length, 1);
  });

  test('in another case of letters is the same one', async (t) => {
    const { bank, gateway } = await startLine(t);
    const id = randomUUID();
    await call(gateway.url, withId(id));
    const again = await call(gateway.url, withId(id.toUpperCase()));
    assert.equal(again.header('Idempotent-Replayed'), 'true');
    assert.equal(again.header('X-Request-ID'), id.toUpperCase());
    assert.equal(bank.payments.length, 1);
  });

  test('with another body is refused, and nothing is sent', async (t) => {
    const { bank, gateway } = await startLine(t);
    const id = randomUUID();
    await call(gateway.url, withId(id));
    const again = await call(gateway.url, withId(id, initiation.body.replace('123', '124')));
    assert.equal(again.status, 409);
    assert.equal(errorOf(again), 'DUPLICATE_MISMATCH');
    assert.equal(bank.requests.length, 1);
  });

  test('with another token is the same one: tokens are refreshed', async (t) => {
    const { bank, gateway } = await startLine(t);
    const one = withId(randomUUID());
    const bearing = (token: string) => ({
      ...one,
      headers: [...one.headers, ['Authorization', token] as const],
    });
    await call(gateway.url, bearing('Bearer old'));
    const again = await call(gateway.url, bearing('Bearer new'));
    assert.equal(again.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.payments.length, 1);
  });

  test('is replayed with the answer that the bank refused it with, too', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'status', status: 403 }, { times: 1 });
    const one = withId(randomUUID());
    const [first, again] = [await call(gateway.url, one), await call(gateway.url, one)];
    assert.deepEqual([first.status, again.status], [403, 403]);
    assert.equal(again.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.requests.length, 1);
  });

  test('after too many requests is sent again: the bank has done nothing', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'too-many-requests' }, { times: 1 });
    const one = withId(randomUUID());
    const [first, again] = [await call(gateway.url, one), await call(gateway.url, one)];
    assert.deepEqual([first.status, again.status], [429, 201]);
    assert.equal(again.header('Idempotent-Replayed'), undefined);
  });

  test('while the first one runs is told to come back, after the configured wait', async (t) => {
    const { bank, gateway } = await startLine(t, { idempotency: { wait: '100ms' } });
    bank.injectFault({ name: 'never-answer', strikes: 'before-effect' });
    const one = withId(randomUUID());
    const first = call(gateway.url, one);
    await bank.waitUntil(() => bank.requests.length === 1);
    const again = await call(gateway.url, one);
    assert.equal(again.status, 409);
    assert.equal(errorOf(again), 'DUPLICATE_IN_FLIGHT');
    assert.equal(again.header('Retry-After'), '1');
    await bank.stop();
    assert.equal(errorOf(await first), 'OUTCOME_UNKNOWN');
    assert.equal(errorOf(await call(gateway.url, one)), 'DUPLICATE_IN_DOUBT');
  });

  test('after a TPP that hung up at once gets the answer of the one payment', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'latency', ms: 100 });
    const one = withId(randomUUID());
    const agent = new Agent();
    const hungUp = call(gateway.url, one, agent);
    await bank.waitUntil(() => bank.requests.length === 1);
    agent.destroy();
    await assert.rejects(hungUp);
    const again = await call(gateway.url, one);
    assert.equal(again.status, 201);
    assert.equal(again.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.payments.length, 1);
  });
});

describe('a payment whose outcome is not known', () => {
  const deadlines = { connect: '200ms', status: '500ms', read: '500ms', write: '300ms' };

  test('is in doubt until the late answer comes, which a repeat then gets', async (t) => {
    const { bank, gateway } = await startLine(t, {
      deadlines,
      shaping: { maxWait: { write: '100ms', read: '100ms', status: '100ms' } },
      idempotency: { wait: '50ms' },
    });
    bank.injectFault({ name: 'latency', ms: 1_000 }, { times: 1 });
    const one = withId(randomUUID());
    assert.equal(errorOf(await call(gateway.url, one)), 'OUTCOME_UNKNOWN');
    assert.equal(errorOf(await call(gateway.url, one)), 'DUPLICATE_IN_DOUBT');
    const [listed] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as Record<string, unknown>[];
    assert.equal(listed?.xRequestId, one.headers[0]?.[1]);
    assert.equal(listed?.environment, 'sandbox');

    await until(3_000, 'the late answer', async () => (await call(gateway.url, one)).status === 201);
    assert.equal(bank.payments.length, 1);
    assert.deepEqual(await readAdminApi(gateway, '/api/in-doubt'), []);
    const status = { method: 'GET', path: `${transfers}/${bank.payments[0]?.paymentId}/status` };
    assert.equal((await call(gateway.url, status)).status, 200);
  });

  test('stays with the answer of 5xx that the bank gave, and is listed', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'status', status: 504 }, { times: 1 });
    const one = withId(randomUUID());
    const [first, again] = [await call(gateway.url, one), await call(gateway.url, one)];
    assert.deepEqual([first.status, again.status], [504, 504]);
    assert.equal(again.header('Idempotent-Replayed'), 'true');
    assert.equal(bank.requests.length, 1);
    assert.equal(((await readAdminApi(gateway, '/api/in-doubt')) as unknown as unknown[]).length, 1);
  });

  test('is resolved by an operator: it happened, and the repeat is told which payment it is', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'close-before-answering' }, { times: 1 });
    const one = withId(randomUUID());
    assert.equal(errorOf(await call(gateway.url, one)), 'OUTCOME_UNKNOWN');
    const [{ id }] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as [{ id: string }];
    const paymentId = bank.payments[0]?.paymentId ?? '';
    const resolved = await callAdminApi(gateway, 'POST', `/api/in-doubt/${id}`, {
      outcome: 'happened',
      paymentId,
      reason: 'the bank found it',
    });
    assert.equal(resolved.status, 200);
    const again = await call(gateway.url, one);
    assert.equal(errorOf(again), 'DUPLICATE_IN_DOUBT');
    assert.match(again.text, new RegExp(`${transfers}/${paymentId}/status`));
    const aboutRequests = gateway.logLines.filter((line) => line.includes('"message":"request failed"'));
    assert.doesNotMatch(aboutRequests.join(), new RegExp(paymentId));
    assert.deepEqual(await readAdminApi(gateway, '/api/in-doubt'), []);
  });

  test('is resolved by an operator: it did not happen, and the repeat is sent; not before the bank can no longer act', async (t) => {
    const { bank, gateway } = await startLine(t, {
      deadlines,
      shaping: { maxWait: { write: '100ms', read: '100ms', status: '100ms' } },
      idempotency: { wait: '50ms', lateAnswer: '300ms' },
    });
    bank.injectFault({ name: 'close-before-answering', strikes: 'before-effect' }, { times: 1 });
    const one = withId(randomUUID());
    assert.equal(errorOf(await call(gateway.url, one)), 'OUTCOME_UNKNOWN');
    const [{ id }] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as [{ id: string }];
    const say = (more: object = {}) =>
      callAdminApi(gateway, 'POST', `/api/in-doubt/${id}`, {
        outcome: 'did-not-happen',
        reason: 'the bank says so',
        ...more,
      });
    assert.equal((await say()).status, 409);
    assert.equal((await say({ paymentId: 'a-slip-of-the-hand' })).status, 400);
    await until(3_000, 'it may be resolved', async () => (await say()).status === 200);
    assert.equal((await call(gateway.url, one)).status, 201);
    assert.equal(bank.payments.length, 1);
  });
});
