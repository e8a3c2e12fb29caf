/** Webhooks through a gateway: from the initiation to the message with the final status. */

import assert from 'node:assert/strict';
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { verifyWebhook } from '../../examples/callers/verify-webhook.ts';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type GatewayUnderTest, startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { ask } from '../kit/replicated-postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../kit/webhook-receiver.ts';
import { until } from '../kit/within.ts';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const apiKey = 'key-of-the-shop';
const apiKeySha256 = hash('sha256', apiKey, 'hex');

/** Polls several times per second. */
const eager = { statusCache: { pendingTtl: '200ms', pendingTtlMax: '200ms' } };

interface Bank {
  /** The status of all payments from now on. */
  status: string;
  /** The only token that the bank accepts for reads; any if it is `undefined`. */
  token: string | undefined;
}

async function startBank(t: TestContext) {
  const bank: Bank = { status: 'RCVD', token: undefined };
  let payments = 0;
  const stub = await startStubBank(t, ({ method, path, header }) => {
    if (method === 'POST' && !path.endsWith('/authorisations')) {
      const paymentId = `payment-${++payments}`;
      return { ...statusResponse('RCVD', { paymentId }), status: 201 };
    }
    if (method === 'GET' && bank.token !== undefined && header('authorization') !== bank.token)
      return { status: 401, headers: [['Content-Type', 'application/json']], body: '{}' };
    return statusResponse(bank.status);
  });
  return { bank, stub };
}

/** The settings of a client that may have webhooks at this receiver. */
function clientSection(t: TestContext, receiver: WebhookReceiver) {
  const secretFile = join(temporaryFolder(t), 'secret');
  writeFileSync(secretFile, `${secret}\n`);
  const urls = [`http://127.0.0.1:${receiver.port}/hooks`];
  return { name: 'shop', apiKeySha256, notifications: { urls, secretFile } };
}

const hookOf = (receiver: WebhookReceiver): Field => [
  'TPP-Notification-URI',
  `http://127.0.0.1:${receiver.port}/hooks/1`,
];

const initiationWith = (...headers: readonly Field[]): Call => ({
  ...initiation,
  headers: [...initiation.headers, ['X-API-Key', apiKey], ...headers],
});

const tokenOne: Field = ['Authorization', 'Bearer token-one-of-the-psu'];
const key: Field = ['X-API-Key', apiKey];

async function startAll(t: TestContext, sections: object = {}) {
  const receiver = await startWebhookReceiver(t);
  const { bank, stub } = await startBank(t);
  const environments = { sandbox: { baseUrl: stub.baseUrl } };
  const clients = [
    clientSection(t, receiver),
    { name: 'other', tenant: 'other', apiKeySha256: hash('sha256', 'key-of-the-other', 'hex') },
  ];
  return { receiver, bank, stub, config: { environments, clients, ...eager, ...sections } };
}

const messagesOf = ({ received }: WebhookReceiver): readonly Readonly<Record<string, unknown>>[] =>
  received.map(({ headers, body }) => {
    const message = verifyWebhook(headers, Buffer.from(body), secret);
    assert.ok(typeof message === 'object' && message !== null);
    return { ...message };
  });

const statusesOf = (receiver: WebhookReceiver) =>
  messagesOf(receiver).map(({ transactionStatus }) => transactionStatus);

const untilReceived = (receiver: WebhookReceiver, ...statuses: readonly string[]) =>
  until(
    20_000,
    () => `${statuses.join(', ')} arrive; there are ${statusesOf(receiver).join(', ')}`,
    () => statusesOf(receiver).join() === statuses.join(),
  );

const support = (reply: { header(name: string): string | undefined }) => [
  reply.header('ASPSP-Notification-Support'),
  reply.header('ASPSP-Notification-Content'),
];

describe('webhooks', () => {
  test('report each change of the status, the last one as final, and nothing after it', async (t) => {
    const { receiver, bank, stub, config } = await startAll(t);
    const gateway = await startGateway(t, config);
    const request = { ...initiationWith(tokenOne, hookOf(receiver)), requestId: randomUUID() };
    const created = await call(gateway.url, request);
    assert.equal(created.status, 201);
    assert.deepEqual(support(created), ['true', 'status=PROCESS']);
    assert.equal(stub.requests[0]?.header('tpp-notification-uri'), '');

    const repeated = await call(gateway.url, request);
    assert.equal(repeated.header('Idempotent-Replayed'), 'true');
    assert.deepEqual(support(repeated), ['true', 'status=PROCESS']);

    for (const [index, status] of ['ACTC', 'ACSP', 'ACCC'].entries()) {
      bank.status = status;
      await untilReceived(receiver, ...['ACTC', 'ACSP', 'ACCC'].slice(0, index + 1));
    }
    const paymentId = String(jsonOf(created).paymentId);
    assert.deepEqual(
      messagesOf(receiver).map(({ sequence, final }) => [sequence, final]),
      [
        [1, false],
        [2, false],
        [3, true],
      ],
    );
    assert.deepEqual(messagesOf(receiver)[0]?._links, {
      status: { href: `https://gateway.example${transfersPath}/${paymentId}/status` },
    });
    assert.equal(receiver.received[0]?.path, '/hooks/1');

    const reads = stub.requests.length;
    bank.status = 'RJCT';
    await call(gateway.url, {
      method: 'GET',
      path: `${transfersPath}/${paymentId}/status`,
      headers: [tokenOne, key, ['Cache-Control', 'no-cache']],
    });
    assert.equal(stub.requests.length, reads + 1, 'the gateway has stopped to read the status');
    assert.deepEqual(statusesOf(receiver), ['ACTC', 'ACSP', 'ACCC']);
  });

  test('are part of the history of their payment, and of the figures of their endpoint', async (t) => {
    const { receiver, bank, config } = await startAll(t);
    receiver.answerWith((response, _received, number) => {
      response.writeHead(number === 1 ? 503 : 204).end();
    });
    const gateway = await startGateway(t, config);
    const created = await call(gateway.url, initiationWith(tokenOne, hookOf(receiver)));
    bank.status = 'ACCC';
    await until(20_000, 'the second attempt succeeds', () => receiver.received.length === 2);
    const { paymentId } = jsonOf(created);
    const webhooksOf = async () => {
      const body = await readAdminApi(gateway, `/api/payments/sandbox/${paymentId}`);
      const { history } = z.object({ history: z.array(z.looseObject({ what: z.string() })) }).parse(body);
      return history.filter(({ what }) => what === 'webhook');
    };
    await until(5_000, 'it is recorded', async () => (await webhooksOf())[0]?.outcome === 'delivered');
    const [webhook, ...others] = await webhooksOf();
    assert.deepEqual(others, []);
    const endpoint = `http://127.0.0.1:${receiver.port}`;
    assert.deepEqual(
      [webhook?.xRequestId, webhook?.status, webhook?.who, webhook?.text],
      [
        receiver.received[0]?.headers['webhook-id'],
        'ACCC',
        'shop',
        `to ${endpoint}, 2 attempts; last failure: the endpoint fails (5xx)`,
      ],
    );
    const body = await readAdminApi(gateway, '/api/notifications/summary');
    const { endpoints } = z.object({ endpoints: z.array(z.looseObject({})) }).parse(body);
    assert.deepEqual(
      endpoints.map((each) => [each.tenant, each.endpoint, each.delivered, each.failedAttempts]),
      [['shop', endpoint, 1, 1]],
    );
  });

  test('are not offered to other clients: their headers reach the bank', async (t) => {
    const { receiver, stub, config } = await startAll(t);
    const gateway = await startGateway(t, config);
    const reply = await call(gateway.url, {
      ...initiation,
      headers: [...initiation.headers, ['X-API-Key', 'key-of-the-other'], hookOf(receiver)],
    });
    assert.deepEqual([reply.status, ...support(reply)], [201, undefined, undefined]);
    assert.equal(stub.requests[0]?.header('tpp-notification-uri'), hookOf(receiver)[1]);
  });

  test('continue after a read with another token, if the bank refuses the first one', async (t) => {
    const { receiver, bank, stub, config } = await startAll(t);
    const gateway = await startGateway(t, config);
    const created = await call(gateway.url, initiationWith(tokenOne, hookOf(receiver)));
    bank.token = 'Bearer token-two-of-the-psu';
    await until(20_000, 'the bank has refused a read', () => stub.requests.length > 1);

    bank.status = 'ACSP';
    const path = `${transfersPath}/${jsonOf(created).paymentId}/status`;
    const tokenTwo: Field = ['Authorization', bank.token];
    await call(gateway.url, { method: 'GET', path, headers: [tokenTwo, key] });
    await untilReceived(receiver, 'ACSP');
  });

  test('are listed for operators, who can send one again and end a subscription', async (t) => {
    const { receiver, bank, config } = await startAll(t);
    receiver.answerWith((response) => response.writeHead(500).end());
    const gateway = await startGateway(t, config);
    const created = await call(gateway.url, initiationWith(tokenOne, hookOf(receiver)));
    const paymentId = String(jsonOf(created).paymentId);
    bank.status = 'ACTC';
    const list = async () => {
      const { text } = await callAdminApi(gateway, 'GET', `/api/notifications?payment=${paymentId}`);
      const body: unknown = JSON.parse(text);
      assert.ok(Array.isArray(body) && body.length === 1);
      return body[0];
    };
    await until(20_000, 'an attempt has failed', async () => (await list()).message?.failedAttempts === 1);
    assert.match(
      (await callAdminApi(gateway, 'GET', '/metrics')).text,
      /penstock_webhook_attempts_total\{client="shop",result="failed"\} 1/,
    );
    const { message, id, ...listed } = await list();
    assert.deepEqual([listed.state, message.why], ['undelivered', 'the endpoint fails (5xx)']);
    assert.deepEqual([listed.tenant, listed.client, listed.environment], ['shop', 'shop', 'sandbox']);
    assert.ok(!JSON.stringify(listed).includes('token-one-of-the-psu'));

    receiver.answerWith((response) => response.writeHead(204).end());
    const reason = 'the endpoint works again';
    const change = (action: string, of = id) =>
      callAdminApi(gateway, 'POST', `/api/notifications/${of}`, { action, reason });
    assert.equal((await change('resend')).status, 204);
    await until(20_000, 'it is delivered', async () => (await list()).message === null);
    assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1);
    assert.equal((await change('resend')).status, 404);
    assert.equal((await change('end')).status, 204);
    assert.equal((await change('end')).status, 404);
    const { text } = await callAdminApi(gateway, 'GET', '/api/audit');
    for (const action of ['resend webhook', 'end subscription']) assert.ok(text.includes(action));
  });

  test('survive a restart of a gateway with a state file', async (t) => {
    const { receiver, bank, config } = await startAll(t);
    const folder = temporaryFolder(t);
    const keyFile = join(folder, 'key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'));
    const state = { file: join(folder, 'state'), encryptionKeyFile: keyFile };
    const gateway = await startGatewayProcess(t, { ...config, state });
    const created = await call(gateway.url, initiationWith(tokenOne, hookOf(receiver)));
    assert.deepEqual(support(created), ['true', 'status=PROCESS']);
    await gateway.stop('SIGKILL');
    for (const file of ['state', 'state-wal'])
      assert.ok(!readFileSync(join(folder, file)).includes('token-one-of-the-psu'), file);
    bank.status = 'ACCC';
    await gateway.start();
    await untilReceived(receiver, 'ACCC');
  });

  test('report a payment with an unusual id, which is read as the bank spells it, with the fixed values of the environment', async (t) => {
    const receiver = await startWebhookReceiver(t);
    let status = 'RCVD';
    const stub = await startStubBank(t, ({ method }) =>
      method === 'POST'
        ? {
            ...statusResponse('RCVD', { paymentId: 'a/b' }, [['Location', `${initiation.path}/a%2fb`]]),
            status: 201,
          }
        : statusResponse(status),
    );
    const fixed = { query: { bic: 'HABA' }, headers: { 'X-Portal': 'one' } };
    const environments = { sandbox: { baseUrl: stub.baseUrl, ...fixed } };
    const gateway = await startGateway(t, { environments, clients: [clientSection(t, receiver)], ...eager });
    const created = await call(gateway.url, initiationWith(hookOf(receiver)));
    assert.equal(created.status, 201);
    status = 'ACCC';
    await untilReceived(receiver, 'ACCC');
    const polls = stub.requests.slice(1);
    assert.ok(polls.length > 0);
    for (const poll of polls) {
      assert.equal(poll.path, `${initiation.path}/a%2fb/status?bic=HABA`);
      assert.equal(poll.header('x-portal'), 'one');
    }
  });
});

describe('webhooks on PostgreSQL', { skip: skipWithoutPostgres }, () => {
  test('are not offered for a request with a token if no encryption key is configured', async (t) => {
    const { receiver, config } = await startAll(t);
    const postgres = await newMigratedPostgres();
    const gateway = await startGateway(t, { ...config, state: { postgres } });
    assert.deepEqual(support(await call(gateway.url, initiationWith(tokenOne, hookOf(receiver)))), [
      'false',
      undefined,
    ]);
    assert.deepEqual(support(await call(gateway.url, initiationWith(hookOf(receiver)))), [
      'true',
      'status=PROCESS',
    ]);
    assert.ok(!(await recordsIn(postgres)).includes('token-one-of-the-psu'));
  });

  test('reach the TPP although the instance that subscribed is killed, and no token is readable in the database', async (t) => {
    const { receiver, bank, config } = await startAll(t);
    const postgres = await newMigratedPostgres();
    const keyFile = join(temporaryFolder(t), 'key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'));
    const sections = { ...config, state: { postgres, encryptionKeyFile: keyFile } };
    const [one, other] = [await startGatewayProcess(t, sections), await startGatewayProcess(t, sections)];
    await assertSubscribed(one, receiver);
    assert.match(await recordsIn(postgres), /^sealed:/);
    await one.stop('SIGKILL');
    bank.status = 'ACSP';
    await untilReceived(receiver, 'ACSP');
    bank.status = 'ACCC';
    await untilReceived(receiver, 'ACSP', 'ACCC');
    assert.notEqual(other.command, undefined);
  });
});

async function assertSubscribed(
  gateway: Pick<GatewayUnderTest, 'url'>,
  receiver: WebhookReceiver,
): Promise<void> {
  const created = await call(gateway.url, initiationWith(tokenOne, hookOf(receiver)));
  assert.deepEqual(support(created), ['true', 'status=PROCESS']);
}

async function recordsIn(postgres: string): Promise<string> {
  const rows = await ask(postgres, 'SELECT record FROM subscription');
  assert.ok(rows.length > 0);
  return rows.map(({ record }) => record).join('\n');
}
