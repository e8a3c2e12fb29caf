/** Notifications of a bank, at two instances with one database and one Redis. */

import assert from 'node:assert/strict';
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { type CountingState, createCountingState } from '../kit/counting-state.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { type RedisServer, redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { ask } from '../kit/replicated-postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { metricOf, untilListening } from '../kit/status-listeners.ts';
import { openStatusStream } from '../kit/status-stream.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../kit/webhook-receiver.ts';
import { until } from '../kit/within.ts';

const keyOfShop: Field = ['X-API-Key', 'key-of-the-shop'];
const keyOfOther: Field = ['X-API-Key', 'key-of-the-other'];
const token: Field = ['Authorization', 'Bearer token-of-the-psu'];
const tokenForm = /^[\w-]{48}$/;

describe('notifications of a bank', { skip: skipWithoutRedisServer || skipWithoutPostgres }, () => {
  const scope = scopeOfAllTests();
  let bank: SimulatedBank;
  let postgres: string;
  let redis: RedisServer;
  let receiver: WebhookReceiver;
  let sections: Sections;
  let state: CountingState;
  let one: GatewayUnderTest;
  let other: GatewayUnderTest;
  let publicUrl: string;

  before(async () => {
    // No status changes by itself.
    bank = await startBank(scope, { timings: { authorisedAfterMs: 3_600_000 } });
    bank.notifiesTpps = true;
    redis = await startRedis(scope);
    postgres = await newMigratedPostgres();
    receiver = await startWebhookReceiver(scope);
    const secretFile = join(temporaryFolder(scope), 'secret');
    writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}\n`);
    const keyFile = join(temporaryFolder(scope), 'key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'));
    const urls = [`http://127.0.0.1:${receiver.port}/hooks`];
    const port = await freePort();
    publicUrl = `http://127.0.0.1:${port}/notifications`;
    sections = {
      environments: { sandbox: { baseUrl: bank.baseUrl, bankNotifications: 'receive' } },
      clients: [
        {
          name: 'shop',
          apiKeySha256: hash('sha256', keyOfShop[1], 'hex'),
          notifications: { urls, secretFile },
        },
        { name: 'other', apiKeySha256: hash('sha256', keyOfOther[1], 'hex') },
      ],
      // Nothing is polled during the test.
      statusCache: { pendingTtl: '10min', pendingTtlMax: '10min' },
      notifications: { publicUrl, listen: { port } },
      state: { postgres, redis: redis.url, encryptionKeyFile: keyFile },
    };
    const createState = redisStateFactory(redis.url);
    state = createCountingState(createState(), (operation) =>
      /^\w+ (push|status):(?!secret)/.test(operation),
    );
    one = await startGateway(scope, sections, state);
    other = await startGateway(
      scope,
      { ...sections, notifications: { publicUrl, listen: { port: 0 } } },
      createState(),
    );
    startAnother = (changed) =>
      startGateway(
        scope,
        { ...sections, notifications: { publicUrl, listen: { port: 0 } }, ...changed },
        createState(),
      );
  });
  let startAnother: (changed: Sections) => Promise<GatewayUnderTest>;

  /** Initiates a payment at the first instance. */
  async function initiate(...headers: readonly Field[]) {
    const request: Call = {
      ...initiation,
      headers: [...initiation.headers, token, ...headers],
    };
    const reply = await call(one.url, request);
    assert.equal(reply.status, 201);
    const paymentId = String(jsonOf(reply).paymentId);
    const sent = bank.requests.findLast(({ operation }) => operation === 'initiatePayment');
    const uri = uriIn(sent?.rawHeaders ?? []);
    return { reply, paymentId, uri, token: uri.slice(uri.lastIndexOf('/') + 1) };
  }

  const uriIn = (rawHeaders: readonly string[]) => {
    const at = rawHeaders.findIndex((name) => name.toLowerCase() === 'tpp-notification-uri');
    return at < 0 ? '' : (rawHeaders[at + 1] ?? '');
  };

  const streamAt = ({ url }: GatewayUnderTest, paymentId: string, key = keyOfShop) =>
    openStatusStream(url, `${transfersPath}/${paymentId}/status`, Object.fromEntries([key, token]));

  const readsOf = (paymentId: string) =>
    bank.requests.filter(({ url }) => url.endsWith(`/${paymentId}/status`)).length;

  const notify = (
    { notificationUrl }: GatewayUnderTest,
    name: string,
    body: string | Buffer = '{}',
    agent?: Agent,
  ) => call(notificationUrl, { method: 'POST', path: `/${name}`, body }, agent);

  /** Waits until the seconds of all payments have ended. */
  const untilQuiet = () =>
    until(20_000, 'no read is due', async () => {
      const keys = await redis.command('KEYS', '*:push:*');
      return Array.isArray(keys) && keys.length === 0;
    });

  test('reach a webhook and a stream at another instance', async () => {
    const hook: Field = ['TPP-Notification-URI', `http://127.0.0.1:${receiver.port}/hooks/1`];
    const { reply, paymentId, uri, token: name } = await initiate(keyOfShop, hook);
    assert.equal(uri, `${publicUrl}/${name}`);
    assert.match(name, tokenForm);
    assert.deepEqual(
      [reply.header('ASPSP-Notification-Support'), reply.header('ASPSP-Notification-Content')],
      ['true', 'status=PROCESS'],
    );
    const stream = await streamAt(other, paymentId);
    assert.equal((await stream.next())?.data.transactionStatus, 'RCVD');

    bank.setStatus(paymentId, 'ACSP');

    assert.equal((await stream.next())?.data.transactionStatus, 'ACSP');
    await until(20_000, 'a webhook', () => receiver.received.length > 0);
    assert.equal(JSON.parse(receiver.received[0]?.body ?? '').transactionStatus, 'ACSP');
    // A busy instance may have answered 503 at first.
    const isAccepted = () => bank.notifications.some((sent) => sent.uri === uri && sent.status === 200);
    await until(20_000, 'the bank has sent it', isAccepted);
    stream.close();
  });

  test('reach a stream without a webhook, and another tenant learns nothing', async () => {
    const own = await initiate(keyOfShop);
    const foreign = await initiate(keyOfOther);
    const streams = [
      await streamAt(other, own.paymentId),
      await streamAt(other, foreign.paymentId, keyOfOther),
    ];
    for (const stream of streams) assert.equal((await stream.next())?.data.transactionStatus, 'RCVD');
    await untilQuiet();
    const before = readsOf(foreign.paymentId);
    const refused = await call(other.url, {
      method: 'GET',
      path: `${transfersPath}/${own.paymentId}/status`,
      headers: [keyOfOther, token],
    });
    assert.equal(refused.status, 404);

    bank.setStatus(own.paymentId, 'ACSP');
    assert.equal((await streams[0]?.next())?.data.transactionStatus, 'ACSP');

    assert.equal(readsOf(foreign.paymentId), before);
    for (const stream of streams) stream.close();
  });

  test('cause at most one read per second, however many arrive at all instances', async () => {
    const { paymentId, token: name } = await initiate(keyOfShop);
    const stream = await streamAt(other, paymentId);
    await stream.next();
    await untilListening([one, other], 'stream', 1);
    await untilQuiet();
    const before = readsOf(paymentId);
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });

    const startedAtMs = performance.now();
    const replies = await Promise.all(
      Array.from({ length: 1_000 }, (_, at) => notify(at % 2 === 0 ? one : other, name, '{}', agent)),
    );
    const seconds = (performance.now() - startedAtMs) / 1_000;
    agent.destroy();
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
    await untilQuiet();

    const reads = readsOf(paymentId) - before;
    assert.ok(reads >= 1 && reads <= 2 + Math.floor(seconds), `${reads} reads in ${seconds} s`);
    stream.close();
  });

  test('that are forged, truncated, foreign or of another installation are unknown, without the database and Redis', async () => {
    const { token: name } = await initiate(keyOfShop);
    const recorded = async () =>
      Number((await ask(postgres, 'SELECT count(*) FROM notified_payment'))[0]?.count);
    await until(5_000, 'the payment is recorded', async () => (await recorded()) > 0);
    const before = await recorded();
    state.reset();
    const changed = name.slice(0, -1) + (name.endsWith('A') ? 'B' : 'A');
    const names = [
      changed,
      name.slice(1),
      `${name}A`,
      randomUUID(),
      randomBytes(36).toString('base64url'),
      '',
    ];
    for (const forged of names) assert.equal((await notify(one, forged)).status, 404, forged);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'])
      assert.equal((await call(one.notificationUrl, { method, path: `/${name}` })).status, 405);
    assert.equal((await notify(one, name, Buffer.alloc(65_537))).status, 413);
    assert.deepEqual(state.roundTrips, []);
    assert.equal(await recorded(), before, 'no notification has left a mark');
    assert.equal(
      await metricOf(one, 'penstock_bank_notifications_total', { result: 'unknown' }),
      names.length,
    );

    assert.equal((await notify(one, name, Buffer.alloc(65_536))).status, 200);
    await until(5_000, 'a read is due', () =>
      state.roundTrips.flat().some((operation) => operation.startsWith('writeIfAbsent status:')),
    );
  });

  test('go to the gateway, not to the URI of the TPP, unless the TPP has signed it', async () => {
    const uri: Field = ['TPP-Notification-URI', 'https://tpp.example/payments/1'];
    const preferred: Field = ['TPP-Notification-Content-Preferred', 'status=LAST'];
    const plain = await initiate(keyOfOther, uri, preferred);
    assert.ok(plain.uri.startsWith(`${publicUrl}/`));
    assert.equal(plain.reply.header('ASPSP-Notification-Support'), 'false');
    assert.equal(plain.reply.header('ASPSP-Notification-Content'), undefined);

    const covered =
      'keyId="SN=1,CA=2",algorithm="rsa-sha256",headers="digest tpp-notification-uri",signature="abc="';
    const signed = await initiate(keyOfOther, uri, preferred, ['Signature', covered]);
    assert.equal(signed.uri, uri[1]);
    assert.equal(signed.reply.header('ASPSP-Notification-Content'), 'status=LAST');
  });

  test('are accepted by an instance that starts later, until a reload ends that', async () => {
    const { paymentId, token: name } = await initiate(keyOfShop);
    const stream = await streamAt(other, paymentId);
    await stream.next();
    await untilQuiet();
    const later = await startAnother({});
    const before = readsOf(paymentId);
    assert.equal((await notify(later, name)).status, 200);
    await until(10_000, 'a read', () => readsOf(paymentId) > before);
    stream.close();

    const baseUrl = bank.baseUrl;
    await later.reload({ ...sections, environments: { sandbox: { baseUrl, bankNotifications: 'off' } } });
    assert.equal((await notify(later, name)).status, 404);
  });

  test('have tokens that are neither logged nor readable in the database', async () => {
    const { token: name } = await initiate(keyOfShop);
    await notify(one, name);
    await notify(one, `${name}x`);
    const uris = bank.requests.map(({ rawHeaders }) => uriIn(rawHeaders));
    const tokens = uris.map((uri) => uri.slice(uri.lastIndexOf('/') + 1));
    assert.ok(tokens.includes(name));
    const lines = [one, other].flatMap(({ logLines }) => logLines);
    for (const issued of tokens.filter((text) => tokenForm.test(text)))
      assert.ok(!lines.some((line) => line.includes(issued)), 'a token is in the log');
    const secrets = await ask(postgres, 'SELECT value FROM secret');
    assert.equal(secrets.length, 1);
    assert.match(String(secrets[0]?.value), /^sealed:/);
  });
});
