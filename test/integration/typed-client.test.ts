/** The typed client for TPP systems (docs/callers/typed-client.md) works against the gateway, and its types are up to date. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import {
  cancel,
  createTypedClient,
  type Order,
  pay,
  payOnce,
  waitForStatus,
} from '../../examples/callers/typed-client.ts';
import { root } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { listen } from '../kit/ports.ts';
import { until } from '../kit/within.ts';

const apiKey = 'key of shop';
const clients = [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }];

const newOrder = (): Order => ({
  requestId: randomUUID(),
  wasSent: false,
  payment: {
    instructedAmount: { currency: 'EUR', amount: '123.50' },
    debtorAccount: { iban: 'DE89370400440532013000' },
    creditorName: 'Merchant123',
    creditorAccount: { iban: 'DE02100100109307118603' },
  },
});

describe('the typed client', { concurrency: true }, () => {
  test('pays once, waits for the status and cancels', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    const order = newOrder();

    const { paymentId, initiated } = (await payOnce(client, order)) ?? assert.fail();
    assert.equal(initiated?.transactionStatus, 'RCVD');
    const repeated = await payOnce(client, { ...order, wasSent: true });
    assert.equal(repeated?.paymentId, paymentId);
    assert.equal(bank.payments.length, 1);

    const waiting = waitForStatus(client, paymentId, ['ACTC']);
    await until(10_000, 'the gateway reads the status', () =>
      bank.requests.some(({ url }) => url.endsWith('/status')),
    );
    bank.setStatus(paymentId, 'ACTC');
    assert.equal(await waiting, 'ACTC');
    bank.setStatus(paymentId, undefined);

    assert.equal(await cancel(client, paymentId, randomUUID()), true);
    assert.equal(bank.payments[0]?.transactionStatus, 'CANC');
  });

  test('does not know the outcome if the bank does not answer, and throws if the bank refuses the payment', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients, idempotency: { lateAnswer: '0s' } });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    const order = newOrder();
    for (let attempt = 1; attempt <= 2; attempt++) assert.equal(await pay(client, order), undefined);
    assert.equal(bank.payments.length, 1);

    bank.injectFault({ name: 'status', status: 403 }, { times: 1 });
    await assert.rejects(pay(client, newOrder()));
  });

  test('stops waiting when the payment has a final status that is not wanted', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    const { paymentId } = (await payOnce(client, newOrder())) ?? assert.fail();
    bank.setStatus(paymentId, 'RJCT');
    assert.equal(await waitForStatus(client, paymentId, ['ACSC']), 'RJCT');
  });

  test('pauses between reads that the gateway answers at once', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients, statusCache: { enabled: false } });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    const { paymentId } = (await payOnce(client, newOrder())) ?? assert.fail();
    const waiting = waitForStatus(client, paymentId, ['ACTC']);
    const reads = () => bank.requests.filter(({ url }) => url.endsWith('/status')).length;
    await until(10_000, 'the first read', () => reads() > 0);
    // Each of these takes about as long as a read: without a pause, there would be as many reads.
    for (let count = 0; count < 60; count++) await pay(client, newOrder());
    assert.ok(reads() < 30, `${reads()} reads`);
    bank.setStatus(paymentId, 'ACTC');
    assert.equal(await waiting, 'ACTC');
  });

  test('reports an answer that is not from the gateway, and one without messages', async (t) => {
    const { url } = await startPages(t);
    const client = createTypedClient(url, apiKey);
    await assert.rejects(waitForStatus(client, 'p1', ['ACTC']), /200 is not from the gateway/);
    await assert.rejects(
      cancel(client, 'p1', randomUUID()),
      /the cancellation was refused: 400 \{"error":"bad"\}/,
    );
  });

  test('has types that were made from the present description, and compiles without a cast', () => {
    const digest = createHash('sha256').update(textOf('docs/tpp-openapi.yaml')).digest('hex');
    const [line = ''] = textOf('examples/callers/penstock-api.d.ts').split('\n', 1);
    assert.ok(line.endsWith(digest), 'stale types; run: npm run types:tpp');
    const program = textOf('examples/callers/typed-client.ts').replaceAll('as const', '');
    assert.doesNotMatch(program, /\bas [A-Zau]|\bany\b(?! )|@ts-|[\w)\]]!/);
  });
});

/** Answers reads with a web page, as a proxy may, and the rest with an error of a bank in a format of its own. */
async function startPages(t: TestContext) {
  const server = createServer((request, response) => {
    if (request.method === 'GET') response.setHeader('Content-Type', 'text/html').end('<html>');
    else response.writeHead(400, { 'Penstock-Environment': 'sandbox' }).end('{"error":"bad"}');
  });
  const port = await listen(server);
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${port}` };
}

const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
