/** The signatures of polls, and of the reads that follow a change, at a bank that may require them. */

import assert from 'node:assert/strict';
import { hash, randomBytes, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import { createAuthority } from '../kit/openssl.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { untilListening } from '../kit/status-listeners.ts';
import { openStatusStream } from '../kit/status-stream.ts';
import { type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { startWebhookReceiver } from '../kit/webhook-receiver.ts';
import { until } from '../kit/within.ts';

const qseal = createAuthority(scopeOfAllTests()).issue('qseal');
const ownCertificate = new X509Certificate(qseal.cert).raw.toString('base64');
const apiKey = 'key-of-the-shop';
const key: Field = ['X-API-Key', apiKey];
const token: Field = ['Authorization', 'Bearer one'];
const tppSignature: readonly Field[] = [
  ['Digest', 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
  [
    'Signature',
    'keyId="SN=1,CA=CN=TPP",algorithm="rsa-sha256",headers="digest x-request-id",signature="aaaa"',
  ],
  ['TPP-Signature-Certificate', 'of-the-tpp'],
];

async function start(t: TestContext, ownSigning: boolean) {
  const bank = { status: 'RCVD' };
  const stub = await startStubBank(t, ({ method }) =>
    method === 'POST'
      ? { ...statusResponse('RCVD', { paymentId: '1' }), status: 201 }
      : statusResponse(bank.status),
  );
  const receiver = await startWebhookReceiver(t);
  const secretFile = join(temporaryFolder(t), 'secret');
  writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}\n`);
  const url = `http://127.0.0.1:${receiver.port}/hooks`;
  const signing = { certFile: qseal.certFile, keyFile: qseal.keyFile, algorithm: 'ecdsa-sha256' };
  const gateway = await startGateway(t, {
    environments: { sandbox: { baseUrl: stub.baseUrl, ...(ownSigning && { signing }) } },
    clients: [
      {
        name: 'shop',
        apiKeySha256: hash('sha256', apiKey, 'hex'),
        notifications: { urls: [url], secretFile },
      },
    ],
    statusCache: { pendingTtl: '200ms', pendingTtlMax: '200ms' },
  });
  const hook: Field = ['TPP-Notification-URI', url];
  const waitWith = (...fields: readonly Field[]) =>
    call(gateway.url, { ...statusRead, headers: [key, token, ['Prefer', 'wait=50'], ...fields] });
  return { bank, stub, receiver, gateway, hook, waitWith };
}

/** The signer of each request. */
const signersOf = (requests: readonly StubRequest[]) =>
  requests.map((request) => {
    const certificate = request.header('tpp-signature-certificate');
    assert.equal(certificate !== '', request.header('signature') !== '');
    if (certificate === '') return 'nobody';
    return certificate === ownCertificate ? 'gateway' : 'TPP';
  });

describe('where the environment has a signing certificate', () => {
  test('polls and the reads after a change are signed with it', async (t) => {
    const { bank, stub, gateway, waitWith } = await start(t, true);
    const reply = waitWith();
    await untilListening([gateway], 'wait', 1);
    await until(20_000, 'the gateway polls', () => stub.requests.length >= 2);
    bank.status = 'ACTC';
    assert.equal(jsonOf(await reply).transactionStatus, 'ACTC');
    assert.deepEqual(new Set(signersOf(stub.requests)), new Set(['gateway']));
  });

  test('a TPP that signs its reads can wait: its signature belongs to the first one only', async (t) => {
    const { bank, stub, gateway, waitWith } = await start(t, true);
    const reply = waitWith(...tppSignature);
    await untilListening([gateway], 'wait', 1);
    bank.status = 'ACTC';
    const { header } = await reply;
    assert.equal(header('Preference-Applied'), 'wait=50');
    assert.equal(jsonOf(await reply).transactionStatus, 'ACTC');
    const [first, ...later] = signersOf(stub.requests);
    assert.equal(first, 'TPP');
    assert.ok(later.length >= 2, 'a poll, and the read after the change');
    assert.deepEqual(new Set(later), new Set(['gateway']));
  });

  test('a TPP that signs its reads can open a stream', async (t) => {
    const { bank, stub, gateway } = await start(t, true);
    const fields = Object.fromEntries([key, token, ...tppSignature]);
    const stream = await openStatusStream(gateway.url, statusRead.path, fields);
    assert.equal((await stream.next())?.data.transactionStatus, 'RCVD');
    bank.status = 'ACTC';
    assert.equal((await stream.next())?.data.transactionStatus, 'ACTC');
    assert.deepEqual(signersOf(stub.requests).slice(0, 2), ['TPP', 'gateway']);
  });

  test('a TPP that signs its initiation gets webhooks, and the gateway signs the polls', async (t) => {
    const { bank, stub, receiver, gateway, hook } = await start(t, true);
    const headers = [...initiation.headers, key, token, hook, ...tppSignature];
    const created = await call(gateway.url, { ...initiation, headers });
    assert.equal(created.header('ASPSP-Notification-Support'), 'true');
    bank.status = 'ACCC';
    await until(20_000, 'the message arrives', () => receiver.received.length === 1);
    const [first, ...later] = signersOf(stub.requests);
    assert.deepEqual([first, new Set(later)], ['TPP', new Set(['gateway'])]);
  });
});

describe('where the environment has no signing certificate', () => {
  test('the reads of a TPP that signs them are plain reads, and its initiation gets no webhooks', async (t) => {
    const { stub, gateway, hook, waitWith } = await start(t, false);
    const wait = await waitWith(...tppSignature);
    assert.deepEqual([wait.status, wait.header('Preference-Applied')], [200, undefined]);
    assert.equal(stub.requests[0]?.header('prefer'), 'wait=50');

    const accept: Field = ['Accept', 'text/event-stream'];
    const read = await call(gateway.url, { ...statusRead, headers: [key, token, accept, ...tppSignature] });
    assert.equal(jsonOf(read).transactionStatus, 'RCVD');

    const headers = [...initiation.headers, key, token, hook, ...tppSignature];
    const created = await call(gateway.url, { ...initiation, headers });
    assert.deepEqual([created.status, created.header('ASPSP-Notification-Support')], [201, 'false']);
    assert.deepEqual(signersOf(stub.requests), ['TPP', 'TPP', 'TPP']);
  });
});
