/** The admin API for webhooks: counts, dead letters that are sent again together, and their audit records. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import type { ManageSubscriptions } from '../../src/notifications/manage-subscriptions.ts';
import { GatewayError } from '../../src/request/errors.ts';
import { failedMessage, storeSubscriptions } from '../kit/stored-subscriptions.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { asOperator, asReader, passedPreflight, startAdminApi } from './admin-api-under-test.ts';

const dead = { ...failedMessage, deadSince: 5 };
const reason = 'the endpoint works again';

async function startWith(t: TestScope, changes: Partial<ManageSubscriptions> = {}) {
  const { manage } = await storeSubscriptions(
    t,
    { paymentId: 'active' },
    { paymentId: 'dead', message: dead },
    { paymentId: 'of till', tenant: 'tenant-2', message: dead },
  );
  const { app } = startAdminApi(passedPreflight, {}, {}, { ...manage, ...changes });
  return {
    get: (path: string) => supertest(app).get(`/api${path}`).set(asReader),
    post: (path: string, body: object, operator = asOperator) =>
      supertest(app).post(`/api${path}`).set(operator).send(body),
  };
}

describe('the admin API for webhooks', () => {
  test('counts the subscriptions of each tenant, and names the clients and the limit of the polls', async (t) => {
    const { get } = await startWith(t);
    const { body } = await get('/notifications/summary').expect(200);
    assert.deepEqual(body, {
      clients: ['client'],
      tenants: [
        { tenant: 'shop', active: 2, overdue: 0, failing: 0, undelivered: 0, dead: 1 },
        { tenant: 'till', active: 1, overdue: 0, failing: 0, undelivered: 0, dead: 1 },
      ],
      endpoints: [],
      pollLimits: [{ environment: 'sandbox', perSecond: 10 }],
    });
  });

  test('sums up the messages of the last day for each endpoint', async (t) => {
    const figures = { delivered: 5, undelivered: 1, dead: 0, failedAttempts: 2 };
    const endpoint = { tenant: 'shop', endpoint: 'https://tpp.example', ...figures };
    const { get } = await startWith(t, { endpoints: async () => [{ ...endpoint, lastDeliveredMs: 0 }] });
    const { body } = await get('/notifications/summary').expect(200);
    assert.deepEqual(body.endpoints, [{ ...endpoint, lastDeliveredAt: '1970-01-01T00:00:00.000Z' }]);
  });

  test('shows a subscription by its id', async (t) => {
    const { get } = await startWith(t);
    const [listed] = (await get('/notifications?payment=dead').expect(200)).body;
    assert.deepEqual((await get(`/notifications/${listed.id}`).expect(200)).body, listed);
    await get('/notifications/unknown').expect(404);
  });

  test('sends the dead letters of one tenant or of all again, and records it', async (t) => {
    const { get, post } = await startWith(t);
    const body = { action: 'resend', reason };
    assert.deepEqual((await post('/notifications', { ...body, tenant: 'till' }).expect(200)).body, {
      resent: 1,
    });
    assert.deepEqual((await post('/notifications', body).expect(200)).body, { resent: 1 });
    const { body: records } = await get('/audit').expect(200);
    assert.deepEqual(
      records.map(({ who, action, outcome, details }: Record<string, unknown>) => [
        who,
        action,
        outcome,
        details,
      ]),
      [
        ['olga', 'resend dead letters', 'done', { reason, resent: 1 }],
        ['olga', 'resend dead letters', 'done', { tenant: 'till', reason, resent: 1 }],
      ],
    );
  });

  test('records what was sent again or ended, without the values of the query of its URL', async (t) => {
    const { manage } = await storeSubscriptions(t, {
      paymentId: 'dead',
      message: dead,
      url: 'https://tpp.example/hooks?token=secret',
    });
    const { get, post } = await startWith(t, manage);
    const [{ id }] = (await get('/notifications').expect(200)).body;
    await post(`/notifications/${id}`, { action: 'resend', reason }).expect(204);
    await post(`/notifications/${id}`, { action: 'end', reason }).expect(204);
    const { error } = (await post(`/notifications/${id}`, { action: 'end', reason }).expect(404)).body;
    assert.equal(error, 'No subscription has this id.');
    const { body: records } = await get('/audit').expect(200);
    const url = 'https://tpp.example/hooks?***';
    const details = { reason, client: 'client', paymentId: 'dead', url, webhookId: 'message' };
    assert.deepEqual(
      records.map((record: Record<string, unknown>) => [record.action, record.details]),
      [
        ['end subscription', details],
        ['resend webhook', details],
      ],
    );
  });

  test('records how many were sent again before the shared state became unavailable', async (t) => {
    const { get, post } = await startWith(t, {
      async *resendDead() {
        yield 200;
        throw new GatewayError('STATE_UNAVAILABLE', 'the shared state is unavailable');
      },
    });
    await post('/notifications', { action: 'resend', reason }).expect(503);
    const [record] = (await get('/audit').expect(200)).body;
    assert.deepEqual([record.outcome, record.details.resent], ['failed', 200]);
  });

  test('refuses changes without a reason, with another action, or by an operator who may only read', async (t) => {
    const { get, post } = await startWith(t);
    for (const body of [{ action: 'resend' }, { action: 'end', reason }, { reason }])
      await post('/notifications', body).expect(400);
    await post('/notifications', { action: 'resend', reason }, asReader).expect(403);
    assert.equal((await get('/notifications?state=dead').expect(200)).body.length, 2);
  });
});
