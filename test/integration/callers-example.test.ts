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
  type PaymentStore,
  resumePayments,
  type StoredPayment,
  submitPayment,
} from '../../examples/callers/submit-payment.ts';
import { errorDescriptions } from '../../scripts/docs/error-descriptions.ts';
import { errorTable, isErrorCode } from '../../src/request/errors.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { root } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { listen } from '../kit/ports.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const program = readFileSync(join(root, 'examples/callers/submit-payment.ts'), 'utf8');

/** A store that keeps payments as text, as a database does. */
function createStore(): PaymentStore & { all(): readonly StoredPayment[] } {
  const texts = new Map<string, string>();
  const all = (): readonly StoredPayment[] => [...texts.values()].map((text) => JSON.parse(text));
  return {
    async save(payment) {
      texts.set(payment.requestId, JSON.stringify(payment));
    },
    unfinished: async () => all().filter(({ outcome }) => outcome === undefined),
    all,
  };
}

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
  const store = createStore();
  const toGateway = (changes: Partial<Gateway> = {}): Gateway => ({
    url: network.url,
    apiKey,
    accessToken: async () => 'a token',
    patienceMs: 30_000,
    ...changes,
  });
  const resolve = async (outcome: 'happened' | 'did-not-happen', paymentId?: string) => {
    const [found] = JSON.parse((await callAdminApi(gateway, 'GET', '/api/in-doubt')).text);
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

  test('reports an X-Request-ID that was stored for two payments', async (t) => {
    const { bank, store, toGateway } = await startCaller(t);
    const payment = await createPayment(store, order);
    await submitPayment(store, payment, toGateway());
    const other = { ...payment, body: payment.body.replace('123', '124') };
    assert.notEqual(other.body, payment.body);
    await assert.rejects(submitPayment(store, other, toGateway()), /belongs to another request/);
    assert.equal(bank.payments.length, 1);
  });
});

test('the example for callers gives up for exactly the errors that the error reference wants corrected', () => {
  // A payment never gets the first two; the third one has a message of its own.
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
