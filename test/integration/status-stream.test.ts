/** The status of a payment as server-sent events. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, callOnce, jsonOf } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { startInstances } from '../kit/instances.ts';
import { connectRaw } from '../kit/raw-connection.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { statusRead, transfersPath } from '../kit/request.ts';
import { connectSlowReader } from '../kit/slow-reader.ts';
import { metricOf, untilListening } from '../kit/status-listeners.ts';
import { openStatusStream } from '../kit/status-stream.ts';
import { type StubRequest, type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

/** The gateway polls ten times per second. */
const eager = { statusCache: { pendingTtl: '100ms', pendingTtlMax: '100ms' } };
const lazy = { statusCache: { pendingTtl: '10min', pendingTtlMax: '10min' } };
const { path } = statusRead;
const one = { Authorization: 'Bearer one' };

async function startBank(t: TestContext) {
  let respond: (request: StubRequest) => StubResponse = () => statusResponse('RCVD');
  const bank = await startStubBank(t, (request) => respond(request));
  return {
    bank,
    respond(response: StubResponse | ((request: StubRequest) => StubResponse)) {
      respond = typeof response === 'function' ? response : () => response;
    },
  };
}

async function start(t: TestContext, sections: object = eager) {
  const { bank, respond } = await startBank(t);
  const gateway = await startGateway(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    ...sections,
  });
  return { bank, gateway, respond };
}

describe('a status read that prefers text/event-stream', () => {
  test('gets the present status at once, each change, and the end after a final status', async (t) => {
    const { bank, gateway, respond } = await start(t);
    respond({
      headers: [['Content-Type', 'application/json']],
      body: '{\r\n  "transactionStatus": "RCVD",\n  "fundsAvailable": true, "amount": 1.10\n}',
    });
    const stream = await openStatusStream(gateway.url, path, one);
    const { response } = stream;
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('Content-Type'), 'text/event-stream; charset=utf-8');
    assert.equal(response.headers.get('Penstock-Environment'), 'sandbox');

    const first = await stream.next();
    assert.deepEqual(first?.data, {
      paymentId: '1234-wertiq-983',
      transactionStatus: 'RCVD',
      final: false,
      body: { transactionStatus: 'RCVD', fundsAvailable: true, amount: 1.1 },
    });
    assert.equal(first?.event, 'status');
    const plain = await call(gateway.url, { ...statusRead, headers: Object.entries(one) });
    assert.equal(first?.id, plain.header('ETag'));

    respond(statusResponse('ACTC'));
    const second = await stream.next();
    assert.equal(second?.data.transactionStatus, 'ACTC');
    assert.notEqual(second?.id, first?.id);
    respond(statusResponse('RJCT'));
    assert.equal((await stream.next())?.data.final, true);
    assert.equal(await stream.next(), undefined);
    await untilListening([gateway], 'stream', 0);
    assert.ok(bank.requests.every(({ header }) => header('accept') !== 'text/event-stream'));
    assert.equal(await metricOf(gateway, 'penstock_status_streams_total', { outcome: 'final' }), 1);
  });

  test('gets 204 when it has the final status already, and the status again otherwise', async (t) => {
    const { gateway, respond } = await start(t, lazy);
    const pending = await openStatusStream(gateway.url, path, one);
    const id = (await pending.next())?.id ?? '';
    pending.close();
    const again = await openStatusStream(gateway.url, path, { ...one, 'Last-Event-ID': id });
    assert.equal((await again.next())?.id, id);
    again.close();

    respond(statusResponse('RJCT'));
    const other = `${transfersPath}/another/status`;
    const final = await openStatusStream(gateway.url, other, { ...one, 'Last-Event-ID': id });
    const finalId = (await final.next())?.id ?? '';
    assert.equal(await final.next(), undefined);
    const { response } = await openStatusStream(gateway.url, other, { ...one, 'Last-Event-ID': finalId });
    assert.equal(response.status, 204);
  });

  test('accepts no-cache, which EventSource sends, for its first read only', async (t) => {
    const { bank, gateway, respond } = await start(t);
    await call(gateway.url, { ...statusRead, headers: Object.entries(one) });
    const stream = await openStatusStream(gateway.url, path, { ...one, 'Cache-Control': 'no-cache' });
    await stream.next();
    respond(statusResponse('ACTC'));
    assert.equal((await stream.next())?.data.transactionStatus, 'ACTC');
    assert.equal(bank.requests.at(-1)?.header('cache-control'), '');
    stream.close();
  });

  test('is an ordinary read if Accept prefers another format, or the read bypasses the cache', async (t) => {
    const { bank, gateway } = await start(t);
    for (const accept of [
      'application/json, text/event-stream',
      'text/event-stream;q=0.5, application/xml',
      '*/*',
    ]) {
      const reply = await call(gateway.url, { ...statusRead, headers: [['Accept', accept]] });
      assert.equal(reply.header('Content-Type'), 'application/json', accept);
      assert.equal(bank.requests.at(-1)?.header('accept'), accept);
    }
    const headers = [
      ['Accept', 'text/event-stream'],
      ['Signature', 'keyId="1"'],
    ] as const;
    const signed = await call(gateway.url, { ...statusRead, headers });
    assert.equal(signed.header('Content-Type'), 'application/json');
  });

  test('gets the error of its first read, and the response without a status', async (t) => {
    const { gateway, respond } = await start(t);
    respond({ status: 403, body: 'forbidden' });
    assert.equal((await openStatusStream(gateway.url, path)).response.status, 403);
    respond({ headers: [['Content-Type', 'text/plain']], body: 'unknown' });
    const { response } = await openStatusStream(gateway.url, path);
    assert.equal(response.headers.get('Content-Type'), 'text/plain');
  });

  test('has no body in its events if the bank answers in XML', async (t) => {
    const { gateway, respond } = await start(t);
    respond({ headers: [['Content-Type', 'application/xml']], body: '<D><GrpSts>RJCT</GrpSts></D>' });
    const stream = await openStatusStream(gateway.url, path);
    assert.deepEqual((await stream.next())?.data, {
      paymentId: '1234-wertiq-983',
      transactionStatus: 'RJCT',
      final: true,
    });
  });

  test('ends when the bank refuses the credentials, and when the TPP disconnects', async (t) => {
    const { gateway, respond } = await start(t);
    const refused = await openStatusStream(gateway.url, path, one);
    await refused.next();
    respond({ status: 401 });
    assert.equal(await refused.next(), undefined);

    respond(statusResponse('RCVD'));
    const left = await openStatusStream(gateway.url, path, one);
    await left.next();
    left.close();
    await untilListening([gateway], 'stream', 0);
  });

  test('is refused with OVERLOADED beyond notifications.maxWaiting', async (t) => {
    const { gateway } = await start(t, { ...lazy, notifications: { maxWaiting: 1 } });
    const stream = await openStatusStream(gateway.url, path);
    await stream.next();
    const refused = await callOnce(gateway.url, {
      ...statusRead,
      headers: [['Accept', 'text/event-stream']],
    });
    assert.equal(refused.header('Penstock-Error'), 'OVERLOADED');
    stream.close();
  });

  test('is disconnected if it does not read', async (t) => {
    const { gateway, respond } = await start(t);
    let count = 0;
    const large = 'x'.repeat(2_000_000);
    respond(() => statusResponse(`S${Math.floor(count++ / 2)}`, { large }));
    const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
    const reader = await connectSlowReader(
      gateway.port,
      `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Request-ID: ${requestId}\r\nAccept: text/event-stream\r\n\r\n`,
    );
    t.after(() => reader.socket.destroy());
    await untilListening([gateway], 'stream', 1);
    // Every second read of the bank shows another status, until the buffers of the system are full.
    const headers = [['Cache-Control', 'no-cache']] as const;
    await until(60_000, 'the stream ends', async () => {
      await call(gateway.url, { ...statusRead, headers });
      return (await metricOf(gateway, 'penstock_status_streams_total', { outcome: 'disconnected' })) === 1;
    });
    await reader.hungUp();
  });

  test('ends cleanly at a reload, because its client may have changed', async (t) => {
    const { gateway, bank } = await start(t, lazy);
    const stream = await openStatusStream(gateway.url, path);
    await stream.next();
    await gateway.reload({ environments: { sandbox: { baseUrl: bank.baseUrl } }, ...lazy });
    assert.equal(await stream.next(), undefined);
  });

  test('ends after its first event if the configuration is reloaded during the first read', async (t) => {
    const release = Promise.withResolvers<void>();
    const bank = await startStubBank(t, async () => {
      await release.promise;
      return statusResponse('RCVD');
    });
    const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...lazy };
    const gateway = await startGateway(t, sections);
    const opened = openStatusStream(gateway.url, path);
    await until(20_000, 'the bank is asked', () => bank.requests.length > 0);
    await gateway.reload(sections);
    release.resolve();
    const stream = await opened;
    assert.equal((await stream.next())?.data.transactionStatus, 'RCVD');
    assert.equal(await stream.next(), undefined);
  });

  test('has no event for a response without a status', async (t) => {
    const { bank, gateway, respond } = await start(t);
    const stream = await openStatusStream(gateway.url, path);
    await stream.next();
    const before = bank.requests.length;
    respond({ headers: [['Content-Type', 'text/html']], body: '<html>Maintenance</html>' });
    await until(20_000, 'the page is read', () => bank.requests.length > before + 2);
    respond(statusResponse('ACTC'));
    assert.equal((await stream.next())?.data.transactionStatus, 'ACTC');
    stream.close();
  });

  test('works over HTTP/1.0, where the end of the connection ends the stream', async (t) => {
    const { gateway, respond } = await start(t);
    respond(statusResponse('RJCT'));
    const tpp = await connectRaw(gateway.port);
    t.after(tpp.destroy);
    tpp.send(
      `GET ${path} HTTP/1.0\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\nAccept: text/event-stream\r\n\r\n`,
    );
    await tpp.closed();
    assert.match(tpp.unread(), /^HTTP\/1.1 200 OK\r\n/);
    const body = tpp.unread().split('\r\n\r\n')[1] ?? '';
    assert.match(body, /^event: status\nid: W\/"penstock-.*"\ndata: \{.*"final":true.*\}\n\n$/);
  });
});

describe('an event stream', () => {
  test('ends cleanly when the gateway stops', async (t) => {
    const { bank } = await startBank(t);
    const gateway = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
    const stream = await openStatusStream(gateway.url, path, one);
    await stream.next();
    gateway.command.kill('SIGTERM');
    assert.equal(await stream.next(), undefined);
    assert.equal(await gateway.command.exitCode(), 0);
  });

  test('gets its own response when another user of the tenant sees a change on another instance', {
    skip: skipWithoutRedis,
  }, async (t) => {
    const { bank, respond } = await startBank(t);
    const forCaller = (code: string) => (request: StubRequest) =>
      statusResponse(code, { generatedFor: request.header('authorization') });
    respond(forCaller('RCVD'));
    const [first, second] = await startInstances(t, bank, await sharedRedisUrl(t), lazy);
    const stream = await openStatusStream(first.url, path, one);
    await stream.next();
    respond(forCaller('ACTC'));

    const headers = [['Authorization', 'Bearer two']] as const;
    const seen = await call(second.url, { ...statusRead, headers });

    assert.equal(jsonOf(seen).generatedFor, 'Bearer two');
    const event = await stream.next();
    assert.deepEqual(event?.data.body, { transactionStatus: 'ACTC', generatedFor: 'Bearer one' });
    stream.close();
  });
});
