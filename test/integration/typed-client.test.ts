/** The typed client for TPP systems (docs/callers/typed-client.md) works against the gateway, and its types are up to date. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
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
import { until } from '../kit/within.ts';

const apiKey = 'key of shop';
const clients = [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }];

const newOrder = (): Order => ({
  requestId: randomUUID(),
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

    const { paymentId } = await payOnce(client, order);
    const repeated = await payOnce(client, order);
    assert.equal(repeated.paymentId, paymentId);
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

  test('has types that were made from the present description, and compiles without a cast', () => {
    const digest = createHash('sha256').update(textOf('docs/tpp-openapi.yaml')).digest('hex');
    const [line = ''] = textOf('examples/callers/penstock-api.d.ts').split('\n', 1);
    assert.ok(line.endsWith(digest), 'stale types; run: npm run types:tpp');
    const program = textOf('examples/callers/typed-client.ts').replaceAll('as const', '');
    assert.doesNotMatch(program, /\bas [A-Zau]|\bany\b(?! )|@ts-|[\w)\]]!/);
  });
});

const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
