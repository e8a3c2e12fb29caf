/**
 * The example for callers (docs/callers/submit-payments.md) makes each payment once, whatever fails: the bank, the network, the
 * gateway, or the program itself.
 */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import {
  createPayment,
  type Gateway,
  needsCorrection,
  resumePayments,
  submitPayment,
} from '../../examples/callers/submit-payment.ts';
import { errorDescriptions } from '../../scripts/docs/error-descriptions.ts';
import { errorTable, isErrorCode } from '../../src/request/errors.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { root } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { createPaymentStore } from '../kit/payment-store.ts';
import { listen } from '../kit/ports.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const program = readFileSync(join(root, 'examples/callers/submit-payment.ts'), 'utf8');

/** A proxy in front of the gateway that closes connections when the response begins, while `isLosing`. */
async function startLossyProxy(t: TestContext, port: number) {
  const proxy = { isLosing: true, url: '', lost: 0 };
  const server = createServer((client) => {
    const upstream = connect({ port, host: '127.0.0.1' });
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('data', (bytes) => upstream.write(bytes));
    upstream.on('data', (bytes) => {
      if (!proxy.isLosing) return client.write(bytes);
      proxy.lost += 1;
      return client.destroy();
    });
  });
  proxy.url = `http://127.0.0.1:${await listen(server)}`;
  t.after(() => server.close());
  return proxy;
}

const order = {
  path: initiation.path,
  headers: Object.fromEntries(initiation.headers),
  body: String(initiation.body),
};

const apiKey = 'key of shop';

/** A gateway in front of a bank, with a connection that may lose responses, and a caller's store. */
async function startCaller(t: TestContext) {
  const { bank, gateway } = await startGatewayWithBank(t, {
    clients: [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }],
    deadlines: { connect: '1s', write: '2s' },
    idempotency: { lateAnswer: '0s', wait: '100ms' },
  });
  const network = await startLossyProxy(t, gateway.port);
  network.isLosing = false;
  const store = createPaymentStore();
  const toGateway = (changes: Partial<Gateway> = {}): Gateway => ({
    url: network.url,
    apiKey,
    accessToken: async () => 'a token',
    patienceMs: 30_000,
    ...changes,
  });
  const resolve = async (outcome: 'happened' | 'did-not-happen', paymentId?: string) => {
    const inDoubt = async () => JSON.parse((await callAdminApi(gateway, 'GET', '/api/in-doubt')).text);
    await until(10_000, 'the payment is in doubt', async () => (await inDoubt()).length > 0);
    const [found] = await inDoubt();
    const body = { outcome, paymentId, reason: 'the bank says so' };
    await until(10_000, 'the request can be resolved', async () => {
      return (await callAdminApi(gateway, 'POST', `/api/in-doubt/${found.id}`, body)).status === 200;
    });
  };
  return { bank, network, store, toGateway, resolve };
}

/** The patience of a caller that leaves a payment to the next `resumePayments` after its first attempt. */
const impatient = { patienceMs: 1 };

describe('the example for callers', { concurrency: true }, () => {
  test('stores the outcome of a payment that the bank accepts', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    const outcome = await submitPayment(store, await createPayment(store, order), toGateway());
    assert.deepEqual(outcome, { kind: 'accepted', paymentId: bank.payments[0]?.paymentId });
    assert.deepEqual(store.all()[0]?.outcome, outcome);
  });

  test('keeps a payment unfinished if the answer of the bank names no payment', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    bank.injectFault({ name: 'status', status: 202, body: 'accepted' }, { times: 1 });
    const payment = await createPayment(store, order);
    for (let time = 0; time < 2; time++)
      assert.equal(await submitPayment(store, payment, toGateway(impatient)), undefined);
    assert.equal((await store.unfinished()).length, 1);
  });

  test('makes one payment if the network loses the first responses', async (t) => {
    const { bank, network, store, toGateway } = await startCaller(t);
    network.isLosing = true;
    const submitted = submitPayment(store, await createPayment(store, order), toGateway());
    await until(10_000, 'a response is lost', () => network.lost > 0);
    network.isLosing = false;
    assert.equal((await submitted)?.kind, 'accepted');
    assert.equal(bank.payments.length, 1);
  });

  test('makes one payment if the program ends between the request and the response, or before the request', async (t) => {
    const { bank, network, store, toGateway } = await startCaller(t);
    network.isLosing = true;
    await submitPayment(store, await createPayment(store, order), toGateway(impatient));
    await createPayment(store, order);
    network.isLosing = false;
    await resumePayments(store, toGateway());
    assert.deepEqual(
      store.all().map(({ outcome }) => outcome?.kind),
      ['accepted', 'accepted'],
    );
    assert.equal(bank.payments.length, 2);
  });

  for (const [what, status] of [
    ['is too busy', 429],
    ['wants a fresh token', 401],
  ] as const) {
    test(`repeats a payment while the bank ${what}`, async (t) => {
      const { bank, store, toGateway } = await startCaller(t);
      bank.injectFault({ name: 'status', status }, { times: 1 });
      const outcome = await submitPayment(store, await createPayment(store, order), toGateway());
      assert.equal(outcome?.kind, 'accepted');
      assert.equal(bank.payments.length, 1);
    });
  }

  test('never makes a second payment if the bank made the first one and did not answer', async (t) => {
    const { bank, store, toGateway, resolve } = await startCaller(t);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    const payment = await createPayment(store, order);
    for (let run = 0; run < 2; run++)
      assert.equal(await submitPayment(store, payment, toGateway(impatient)), undefined);
    const paymentId = bank.payments[0]?.paymentId;
    await resolve('happened', paymentId);
    const outcome = await submitPayment(store, payment, toGateway(impatient));
    assert.deepEqual(outcome, { kind: 'accepted', paymentId });
    assert.equal(bank.payments.length, 1);
  });

  test('makes the payment after the operators know that the bank did not', async (t) => {
    const { bank, store, toGateway, resolve } = await startCaller(t);
    bank.injectFault({ name: 'reset', strikes: 'before-effect' }, { times: 1 });
    const payment = await createPayment(store, order);
    assert.equal(await submitPayment(store, payment, toGateway(impatient)), undefined);
    await resolve('did-not-happen');
    await resumePayments(store, toGateway());
    assert.equal(store.all()[0]?.outcome?.kind, 'accepted');
    assert.equal(bank.payments.length, 1);
  });

  test('gives up a payment that the gateway refuses at the first attempt', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    const wrong = { ...order, path: `${order.path}/a/b/c/d` };
    const outcome = await submitPayment(store, await createPayment(store, wrong), toGateway());
    assert.deepEqual(outcome, { kind: 'rejected', status: 404, code: 'PATH_UNKNOWN' });
    assert.deepEqual(await store.unfinished(), []);
    assert.equal(bank.requests.length, 0);
  });

  test('does not give up a payment because the gateway refuses a later attempt: the first one may have been made', async (t) => {
    const { bank, network, store, toGateway } = await startCaller(t);
    network.isLosing = true;
    const payment = await createPayment(store, order);
    await submitPayment(store, payment, toGateway(impatient));
    network.isLosing = false;
    const [sent = payment] = await store.unfinished();
    assert.equal(await submitPayment(store, sent, toGateway({ ...impatient, apiKey: 'expired' })), undefined);
    await resumePayments(store, toGateway());
    assert.equal(store.all()[0]?.outcome?.kind, 'accepted');
    assert.equal(bank.payments.length, 1);
  });

  test('does not send a payment again whose X-Request-ID belongs to another request, and resumes the others', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    const payment = await createPayment(store, order);
    await submitPayment(store, payment, toGateway());
    const restored = createPaymentStore();
    await restored.create({ ...payment, body: payment.body.replace('123', '124') });
    await createPayment(restored, order);
    await resumePayments(restored, toGateway());
    const outcomes = restored.all().map(({ outcome }) => outcome?.kind);
    assert.deepEqual(outcomes, ['mismatch', 'accepted']);
    assert.equal(bank.payments.length, 2);
  });

  test('resumes the other payments after one that cannot be repeated, and reports it', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    for (let count = 0; count < 2; count++) await createPayment(store, order);
    let tokens = 0;
    const accessToken = async () => {
      if (tokens++ === 0) throw new Error('no token');
      return 'a token';
    };
    await assert.rejects(resumePayments(store, toGateway({ accessToken })), /1 payments/);
    assert.equal(store.all()[1]?.outcome?.kind, 'accepted');
    assert.equal(bank.payments.length, 1);
  });

  test('keeps the outcome and the first time of a payment that is submitted again with an old copy', async (t) => {
    const { bank, network, store, toGateway } = await startCaller(t);
    const payment = await createPayment(store, order);
    network.isLosing = true;
    await submitPayment(store, payment, toGateway(impatient));
    const { firstSentAt } = store.all()[0] ?? assert.fail();
    network.isLosing = false;
    const expired = toGateway({ ...impatient, apiKey: 'expired' });
    assert.equal(await submitPayment(store, payment, expired), undefined);
    assert.equal(store.all()[0]?.firstSentAt, firstSentAt);

    const outcome = await submitPayment(store, payment, toGateway());
    assert.equal(outcome?.kind, 'accepted');
    assert.deepEqual(await submitPayment(store, payment, expired), outcome);
    assert.deepEqual(store.all()[0]?.outcome, outcome);
    assert.equal(bank.payments.length, 1);
  });

  test('does not reject a payment because of a first attempt that the gateway refuses, if another attempt began before', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    const payment = await createPayment(store, order);
    const other = Promise.withResolvers<void>();
    const slow = toGateway({
      apiKey: 'expired',
      accessToken: async () => {
        await other.promise;
        return 'a token';
      },
    });
    const refused = submitPayment(store, payment, slow);
    await until(10_000, 'the first attempt begins', () => store.all()[0]?.attempts === 1);
    bank.injectFault({ name: 'status', status: 429 }, { times: 1 });
    assert.equal(await submitPayment(store, payment, toGateway(impatient)), undefined);
    const [unfinished] = await store.unfinished();
    assert.equal(unfinished?.attempts, 2);
    other.resolve();
    await until(10_000, 'the first process tries again', () => (store.all()[0]?.attempts ?? 0) >= 3);
    const outcome = await submitPayment(store, payment, toGateway());
    assert.equal(outcome?.kind, 'accepted');
    assert.deepEqual(await refused, outcome);
    assert.equal(bank.payments.length, 1);
  });

  test('does not send a payment 23 hours after its first attempt', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    const payment = await createPayment(store, order);
    const firstSentAt = Date.now() - 23 * 3_600_000 - 1;
    await store.update(payment.requestId, (stored) => ({ ...stored, attempts: 1, firstSentAt }));
    assert.equal(await submitPayment(store, payment, toGateway()), undefined);
    assert.equal(bank.requests.length, 0);
  });
});

test('the example for callers gives up for exactly the errors that the error reference wants corrected', () => {
  // A payment never gets the first two; the third one has an outcome of its own.
  const others = ['NOT_CACHED', 'REQUEST_UNKNOWN', 'DUPLICATE_MISMATCH'];
  for (const code of Object.keys(errorTable).filter(isErrorCode)) {
    if (others.includes(code)) continue;
    const isExpected = errorDescriptions[code].retry === 'after a correction';
    assert.equal(needsCorrection(errorTable[code].status, code), isExpected, code);
  }
});

test('the page for callers shows the program as it is', () => {
  const page = readFileSync(join(root, 'docs/callers/submit-payments.md'), 'utf8');
  const [, excerpt = assert.fail()] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];
  assert.ok(program.includes(excerpt));
});
