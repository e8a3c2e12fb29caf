/** When the gateway reads the status for webhooks, and when it does not. */

import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { untilListening } from '../kit/status-listeners.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { startWebhookReceiver } from '../kit/webhook-receiver.ts';
import { until } from '../kit/within.ts';

const apiKey = 'key-of-the-shop';
const key: Field = ['X-API-Key', apiKey];
const tokenField = (name: string): Field => ['Authorization', `Bearer ${name}`];
const instantPath = transfersPath.replace('sepa', 'instant-sepa');

async function start(t: TestContext) {
  /** The status of all payments, and the tokens that the bank refuses. */
  const bank = { status: 'RCVD', refused: new Set<string>() };
  let payments = 0;
  const stub = await startStubBank(t, ({ method, header }) => {
    if (method === 'POST') return { ...statusResponse('RCVD', { paymentId: `${++payments}` }), status: 201 };
    if (bank.refused.has(header('authorization'))) return { status: 401, body: '{}' };
    return statusResponse(bank.status);
  });
  const receiver = await startWebhookReceiver(t);
  const folder = temporaryFolder(t);
  const secretFile = join(folder, 'secret');
  writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}\n`);
  const url = `http://127.0.0.1:${receiver.port}/hooks`;
  const notifications = { urls: [url], secretFile };
  const config = {
    environments: { sandbox: { baseUrl: stub.baseUrl } },
    clients: [{ name: 'shop', apiKeySha256: hash('sha256', apiKey, 'hex'), notifications }],
  };
  const initiationBy = (name: string, path = transfersPath): Call => ({
    ...initiation,
    path,
    headers: [...initiation.headers, key, tokenField(name), ['TPP-Notification-URI', url]],
  });
  const readsOf = (paymentId: string) =>
    stub.requests.filter(({ method, path }) => method === 'GET' && path.includes(`/${paymentId}/`)).length;
  const sentStatuses = () =>
    receiver.received.map(({ body }) => {
      const { paymentId, transactionStatus }: Readonly<Record<string, unknown>> = JSON.parse(body);
      return `${paymentId} ${transactionStatus}`;
    });
  return { bank, stub, folder, config, initiationBy, readsOf, sentStatuses };
}

const eager = { statusCache: { pendingTtl: '200ms', pendingTtlMax: '200ms' } };
const lazy = { statusCache: { pendingTtl: '10min', pendingTtlMax: '10min' } };

describe('the polls for webhooks', () => {
  test('become rare after a 401, also across a restart, until the TPP reads the status with another token', async (t) => {
    const { bank, folder, config, initiationBy, readsOf, sentStatuses } = await start(t);
    const keyFile = join(folder, 'key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'));
    const state = { file: join(folder, 'state'), encryptionKeyFile: keyFile };
    const gateway = await startGatewayProcess(t, { ...config, ...eager, state });
    bank.refused.add('Bearer expired');
    await call(gateway.url, initiationBy('expired'));
    await call(gateway.url, initiationBy('valid'));
    await until(20_000, 'the bank refuses the token', () => readsOf('1') >= 1);
    await until(20_000, 'the other payment is read', () => readsOf('2') >= 6);
    assert.ok(readsOf('1') < 6);

    await gateway.stop('SIGTERM');
    await gateway.start();
    const before = readsOf('2');
    await until(20_000, 'the other payment is read again', () => readsOf('2') >= before + 6);
    assert.ok(readsOf('1') < readsOf('2') / 2);

    bank.status = 'ACTC';
    const path = `${transfersPath}/1/status`;
    await call(gateway.url, { method: 'GET', path, headers: [key, tokenField('renewed')] });
    await until(20_000, 'the message arrives', () => sentStatuses().includes('1 ACTC'));
  });

  test('read an instant payment after a second, although the cache keeps its status for minutes', async (t) => {
    const { bank, config, initiationBy, readsOf, sentStatuses } = await start(t);
    const gateway = await startGateway(t, { ...config, ...lazy });
    await call(gateway.url, initiationBy('token', instantPath));
    await until(20_000, 'the status is read twice', () => readsOf('1') >= 2);
    bank.status = 'ACCC';
    await until(20_000, 'the message arrives', () => sentStatuses().includes('1 ACCC'));
  });

  test('read an instant payment after a second for those that wait as well', async (t) => {
    const { bank, config, initiationBy, readsOf } = await start(t);
    const gateway = await startGateway(t, { ...config, ...lazy });
    await call(gateway.url, initiationBy('token', instantPath));
    const wait = call(gateway.url, {
      method: 'GET',
      path: `${instantPath}/1/status`,
      headers: [key, tokenField('other'), ['Prefer', 'wait=50']],
    });
    await untilListening([gateway], 'wait', 1);
    await until(20_000, 'the status is read again', () => readsOf('1') >= 2);
    bank.status = 'ACCC';
    assert.equal(jsonOf(await wait).transactionStatus, 'ACCC');
  });
});
