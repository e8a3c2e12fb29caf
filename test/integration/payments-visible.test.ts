/** Operators see payments: through a real gateway and the simulated bank, and on another instance with the same database. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { connectPostgres } from '../../src/store/postgres.ts';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { anyCanary, headersWithCanaries, initiationBodyWithCanaries } from '../kit/canaries.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import type { Field } from '../kit/fields.ts';
import { startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

interface Entry {
  readonly what: string;
  readonly operation: string | null;
  readonly xRequestId: string | null;
  readonly status: string | null;
  readonly outcome: string | null;
  readonly text: string | null;
  readonly who: string | null;
}

interface Page {
  readonly payment: Readonly<Record<string, unknown>>;
  readonly history: readonly Entry[];
  readonly complete: boolean;
}

const secrets = headersWithCanaries
  .filter((field) => !/^(X-API-Key|traceparent|Forwarded|X-Forwarded-For|X-canary)/i.test(field))
  .map((field): Field => [field.slice(0, field.indexOf(':')), field.slice(field.indexOf(':') + 2)]);

async function startTwoInstances(t: TestContext) {
  const bank = await startBank(t);
  const postgres = await newMigratedPostgres();
  const database = connectPostgres(postgres);
  t.after(() => database.close());
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    deadlines: { connect: '1s', write: '2s' },
    idempotency: { lateAnswer: '0s' },
    statusCache: { pendingTtl: '100ms', pendingTtlMax: '100ms' },
    state: { postgres },
  };
  const [one, other] = [await startGateway(t, sections), await startGateway(t, sections)];
  const pages: string[] = [];
  const page = async (paymentId: string, gateway = other): Promise<Page> => {
    const { text, status } = await callAdminApi(gateway, 'GET', `/api/payments/sandbox/${paymentId}`);
    assert.equal(status, 200, text);
    pages.push(text);
    return JSON.parse(text);
  };
  const send = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: string) => {
    const json = body === undefined ? [] : ([['Content-Type', 'application/json']] as const);
    const requestId = randomUUID();
    const one = { method, path, requestId, headers: [...secrets, ...json], ...(body && { body }) };
    return call(gatewayUrl, one).then((reply) => ({ reply, requestId }));
  };
  const gatewayUrl = one.url;
  return {
    ...{ bank, one, other, database, page, pages, send },
    async pay() {
      const { reply, requestId } = await send('POST', transfersPath, initiationBodyWithCanaries);
      assert.equal(reply.status, 201, reply.text);
      const paymentId = String(jsonOf(reply).paymentId);
      return { paymentId, requestId, path: `${transfersPath}/${paymentId}` };
    },
    untilPage: (paymentId: string, what: string, isReached: (page: Page) => boolean) =>
      until(10_000, what, async () => isReached(await page(paymentId))),
  };
}

const statusesIn = ({ history }: Page) =>
  history.filter(({ what }) => what === 'status').map(({ status }) => status);

describe('payments of two instances', { skip: skipWithoutPostgres }, () => {
  test('show the initiation, each status that was seen and by what, on the other instance', async (t) => {
    const { bank, one, other, database, page, pages, pay, send, untilPage } = await startTwoInstances(t);
    const { paymentId, requestId, path } = await pay();
    const authorisation = await send('POST', `${path}/authorisations`);
    assert.equal(authorisation.reply.status, 201, authorisation.reply.text);
    await untilPage(paymentId, 'the first status is stored', (read) => statusesIn(read).length > 0);

    bank.setStatus(paymentId, 'ACTC');
    const actc = await send('GET', path);
    const waiting = call(one.url, {
      ...{ method: 'GET', path: `${path}/status` },
      headers: [
        ['Authorization', 'Bearer canary'],
        ['Prefer', 'wait=30'],
      ],
    });
    await until(
      10_000,
      'the wait reads the status',
      () => bank.requests.at(-1)?.url.endsWith('/status') ?? false,
    );
    bank.setStatus(paymentId, 'ACCC');
    assert.equal(jsonOf(await waiting).transactionStatus, 'ACCC');
    await send('GET', `${path}/status`);
    await untilPage(
      paymentId,
      'the last status and the records are stored',
      (read) =>
        statusesIn(read).includes('ACCC') && read.history.some(({ what }) => what === 'authorisation'),
    );

    const { payment, history, complete } = await page(paymentId);
    const { createdAt, statusSince, ...rest } = payment;
    assert.deepEqual(rest, {
      ...{ environment: 'sandbox', paymentId, tenant: 'anonymous' },
      ...{ product: 'payments/sepa-credit-transfers', status: 'ACCC', outcome: 'executed' },
    });
    assert.equal(complete, true);
    assert.deepEqual(
      history.map(({ what, status, xRequestId, text }) => [what, status, xRequestId, text]).toSorted(byFirst),
      [
        ['authorisation', '201', authorisation.requestId, null],
        ['initiation', '201', requestId, null],
        ['status', 'RCVD', requestId, 'seen by: initiation'],
        ['status', 'ACTC', actc.requestId, 'seen by: payment read'],
        ['status', 'ACCC', null, 'seen by: poll'],
      ],
    );
    assert.deepEqual(await page(paymentId, one), await page(paymentId, other));
    const rows = await database.query('SELECT * FROM payment_status');
    assert.doesNotMatch(JSON.stringify(rows) + pages.join(), anyCanary);
  });

  test('show a cancellation, one in doubt, and the operator who resolved it', async (t) => {
    const { bank, one, other, page, pages, pay, send, untilPage } = await startTwoInstances(t);
    const cancelled = await pay();
    const { reply } = await send('DELETE', cancelled.path);
    assert.equal(reply.status, 204, reply.text);
    await untilPage(cancelled.paymentId, 'it is cancelled', ({ payment }) => payment.outcome === 'cancelled');

    const authorised = await pay();
    bank.setStatus(authorised.paymentId, 'ACTC');
    assert.equal((await send('DELETE', authorised.path)).reply.status, 202);
    await untilPage(authorised.paymentId, 'the answer to its cancellation shows its status', ({ history }) =>
      history.some(({ status, text }) => status === 'ACTC' && text === 'seen by: cancellation'),
    );

    const doubtful = await pay();
    bank.setStatus(doubtful.paymentId, 'ACTC'); // the answer to the cancellation then has a body, which faults can affect
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { operation: 'cancelPayment' });
    const { requestId } = await send('DELETE', doubtful.path);
    await untilPage(doubtful.paymentId, 'it is in doubt', ({ payment }) => payment.outcome === 'in-doubt');
    const doubt = (await page(doubtful.paymentId)).history.find(({ what }) => what === 'in-doubt');
    assert.deepEqual([doubt?.operation, doubt?.xRequestId], ['cancelPayment', requestId]);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { operation: 'initiatePayment' });
    await send('POST', transfersPath, initiationBodyWithCanaries);

    const inDoubt: readonly Readonly<Record<string, unknown>>[] = JSON.parse(
      (await callAdminApi(other, 'GET', '/api/in-doubt')).text,
    );
    assert.deepEqual(
      inDoubt.map(({ operation, paymentId }) => [operation, paymentId]),
      [
        ['cancelPayment', doubtful.paymentId],
        ['initiatePayment', null],
      ],
    );
    const list = async (query: string) => {
      const read = await readAdminApi(other, `/api/payments?${query}`);
      pages.push(JSON.stringify(read));
      return { ...read, ids: (read.payments as Page['payment'][]).map(({ paymentId }) => paymentId) };
    };
    const doubts = await list('outcome=in-doubt');
    assert.deepEqual(doubts.ids, [doubtful.paymentId]);
    assert.deepEqual(Object(doubts).initiationsInDoubt, 1);
    assert.deepEqual((await list('outcome=cancelled')).ids, [cancelled.paymentId]);
    assert.deepEqual((await list('status=CANC&tenant=anonymous')).ids, [cancelled.paymentId]);
    assert.deepEqual((await list('')).ids, [
      ...[doubtful.paymentId, authorised.paymentId, cancelled.paymentId],
    ]);
    assert.deepEqual((await list('tenant=nobody')).ids, []);

    const resolution = { outcome: 'happened', reason: 'the bank, ticket 4711' };
    const resolved = await callAdminApi(one, 'POST', `/api/in-doubt/${inDoubt[0]?.id}`, resolution);
    assert.equal(resolved.status, 200, resolved.text);
    const { history, payment } = await page(doubtful.paymentId);
    assert.notEqual(payment.outcome, 'in-doubt');
    const { what, who, outcome, text, xRequestId } = history.at(-1) ?? assert.fail();
    assert.deepEqual(
      { what, who, outcome, text, xRequestId },
      {
        what: 'resolution',
        who: 'admin',
        outcome: 'happened',
        text: 'the bank, ticket 4711',
        xRequestId: requestId,
      },
    );
    assert.doesNotMatch(pages.join(), anyCanary);
  });
});

const byFirst = ([one]: readonly unknown[], [other]: readonly unknown[]) =>
  String(one).localeCompare(String(other));

describe('payments', () => {
  test('have statuses also without the status cache, and none for a text of the bank that is no code', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { statusCache: { enabled: false } });
    const paymentId = String(jsonOf(await call(gateway.url, initiation)).paymentId);
    const read = () => call(gateway.url, { method: 'GET', path: `${transfersPath}/${paymentId}/status` });
    for (const status of ['canary-status', 'ACSC']) {
      bank.setStatus(paymentId, status);
      await read();
    }
    await until(10_000, 'the status is stored', async () => {
      const { payment } = await readAdminApi(gateway, `/api/payments/sandbox/${paymentId}`);
      return Object(payment).status === 'ACSC';
    });
    const { text } = await callAdminApi(gateway, 'GET', `/api/payments/sandbox/${paymentId}`);
    assert.doesNotMatch(text, anyCanary);
    assert.match(text, /"RCVD".*"ACSC"/);
  });

  test('are found by ids with any character, and refused if unknown or malformed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.nextPaymentId('an id/with ?');
    await call(gateway.url, initiation);
    const path = `/api/payments/sandbox/${encodeURIComponent('an id/with ?')}`;
    assert.equal(Object((await readAdminApi(gateway, path)).payment).paymentId, 'an id/with ?');
    for (const [wrong, status] of [
      ['/sandbox/unknown', 404],
      [path.replace('/api/payments/sandbox', '/nowhere'), 404],
      ['/sandbox/%00', 404],
      ['?cursor=nonsense', 400],
      ['?status=executed', 400],
      ['?outcome=ACSC', 400],
      ['?payment=1', 400],
    ] as const)
      assert.equal((await callAdminApi(gateway, 'GET', `/api/payments${wrong}`)).status, status, wrong);
  });
});
