/** Webhooks about the status of authorisations, and the reads of the gateway for them. */

import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { verifyWebhook } from '../../examples/callers/verify-webhook.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../kit/webhook-receiver.ts';
import { until } from '../kit/within.ts';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const apiKey = 'key-of-the-shop';
const eager = { statusCache: { pendingTtl: '200ms', pendingTtlMax: '200ms' } };
const token: Field = ['Authorization', 'Bearer token-of-the-psu'];

/** A bank with one payment, whose statuses the test sets. */
async function startBank(t: TestContext, initiated: object = {}) {
  const bank = { status: 'RCVD', scaStatus: 'received' };
  const stub = await startStubBank(t, ({ method, path }) => {
    if (method === 'POST' && path.endsWith('authorisations')) {
      const body = { scaStatus: bank.scaStatus, authorisationId: 'auth-1', _links: {} };
      return { ...statusResponse('', body), status: 201 };
    }
    if (method === 'POST')
      return { ...statusResponse('RCVD', { paymentId: '1', ...initiated }), status: 201 };
    if (path.endsWith('/authorisations')) return statusResponse('', { authorisationIds: ['auth-1'] });
    if (path.includes('authorisations/')) return statusResponse('', { scaStatus: bank.scaStatus });
    return statusResponse(bank.status);
  });
  return { bank, stub };
}

async function startAll(t: TestContext, initiated: object = {}, sections: object = {}) {
  const receiver = await startWebhookReceiver(t);
  const { bank, stub } = await startBank(t, initiated);
  const secretFile = join(temporaryFolder(t), 'secret');
  writeFileSync(secretFile, `${secret}\n`);
  const url = `http://127.0.0.1:${receiver.port}/hooks`;
  const notifications = { urls: [url], secretFile };
  const clients = [{ name: 'shop', apiKeySha256: hash('sha256', apiKey, 'hex'), notifications }];
  const environments = { sandbox: { baseUrl: stub.baseUrl } };
  const hook: Field = ['TPP-Notification-URI', url];
  const config = { environments, clients, ...eager, ...sections };
  return { receiver, bank, stub, hook, config };
}

const initiationWith = (...headers: readonly Field[]): Call => ({
  ...initiation,
  headers: [...initiation.headers, ['X-API-Key', apiKey], token, ...headers],
});
const authorisation: Call = {
  method: 'POST',
  path: `${transfersPath}/1/authorisations`,
  headers: [['X-API-Key', apiKey], token, ['Content-Type', 'application/json']],
  body: '{}',
};
const preferring = (content: string): Field => ['TPP-Notification-Content-Preferred', `status=${content}`];

const messagesOf = ({ received }: WebhookReceiver) =>
  received.map(({ headers, body }) => {
    const message: object = Object(verifyWebhook(headers, Buffer.from(body), secret));
    const { transactionStatus, authorisationId, scaStatus, final }: Readonly<Record<string, unknown>> = {
      ...message,
    };
    return [transactionStatus, authorisationId, scaStatus, final];
  });

const untilReceived = (receiver: WebhookReceiver, ...expected: ReturnType<typeof messagesOf>) =>
  until(
    20_000,
    () => `${JSON.stringify(expected)} arrive; there are ${JSON.stringify(messagesOf(receiver))}`,
    () => JSON.stringify(messagesOf(receiver)) === JSON.stringify(expected),
  );

const authorisationReads = (requests: readonly StubRequest[]) =>
  requests.filter(({ method, path }) => method === 'GET' && path.includes('authorisations'));

describe('webhooks with SCA', () => {
  test('report each change of an authorisation while it runs, and then only the payment', async (t) => {
    const { receiver, bank, stub, hook, config } = await startAll(t);
    const gateway = await startGateway(t, config);
    const created = await call(gateway.url, initiationWith(hook, preferring('SCA,PROCESS')));
    assert.equal(created.header('ASPSP-Notification-Content'), 'status=SCA,PROCESS');
    assert.deepEqual(authorisationReads(stub.requests), []);

    assert.equal((await call(gateway.url, authorisation)).status, 201);
    bank.scaStatus = 'psuAuthenticated';
    const authenticated = ['RCVD', 'auth-1', 'psuAuthenticated', false];
    await untilReceived(receiver, authenticated);
    Object.assign(bank, { status: 'ACTC', scaStatus: 'finalised' });
    const finalised = ['ACTC', 'auth-1', 'finalised', false];
    await untilReceived(receiver, authenticated, finalised);

    const [read] = authorisationReads(stub.requests);
    assert.equal(read?.path, `${transfersPath}/1/authorisations/auth-1`);
    assert.equal(read?.header('authorization'), token[1]);
    const reads = authorisationReads(stub.requests).length;
    bank.status = 'ACCC';
    await untilReceived(receiver, authenticated, finalised, ['ACCC', undefined, undefined, true]);
    assert.equal(authorisationReads(stub.requests).length, reads, 'it has ended');
  });

  test('alone report an authorisation that the bank has started, and read nothing after it', async (t) => {
    const initiated = { _links: { scaRedirect: { href: 'https://bank.example/authorise' } } };
    const { receiver, bank, stub, hook, config } = await startAll(t, initiated);
    const gateway = await startGateway(t, config);
    const created = await call(gateway.url, initiationWith(hook, preferring('SCA')));
    assert.equal(created.header('ASPSP-Notification-Content'), 'status=SCA');
    await untilReceived(receiver, ['RCVD', 'auth-1', 'received', false]);
    assert.equal(authorisationReads(stub.requests)[0]?.path, `${transfersPath}/1/authorisations`);
    Object.assign(bank, { status: 'ACTC', scaStatus: 'failed' });
    await until(20_000, 'the end arrives', () => messagesOf(receiver).length === 2);
    assert.deepEqual(messagesOf(receiver)[1], ['ACTC', 'auth-1', 'failed', false]);
    bank.status = 'RJCT';
    const path = `${transfersPath}/1/status`;
    const read = { method: 'GET', path, headers: [token, ['X-API-Key', apiKey]] } as const;
    await until(20_000, 'the TPP sees the last status', async () => {
      return jsonOf(await call(gateway.url, read)).transactionStatus === 'RJCT';
    });
    assert.equal(messagesOf(receiver).length, 2);
  });

  test('continue after a restart with a state file', async (t) => {
    const folder = temporaryFolder(t);
    const keyFile = join(folder, 'key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'));
    const state = { file: join(folder, 'state'), encryptionKeyFile: keyFile };
    const { receiver, bank, hook, config } = await startAll(t, {}, { state });
    const gateway = await startGatewayProcess(t, config);
    await call(gateway.url, initiationWith(hook, preferring('SCA,LAST')));
    await call(gateway.url, authorisation);
    await gateway.stop('SIGKILL');
    bank.scaStatus = 'finalised';
    await gateway.start();
    const finalised = ['RCVD', 'auth-1', 'finalised', false];
    await untilReceived(receiver, finalised);
    bank.status = 'RJCT';
    await untilReceived(receiver, finalised, ['RJCT', undefined, undefined, true]);
  });
});
