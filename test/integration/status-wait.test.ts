/** Waiting status reads (`Prefer: wait`) of one instance. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, callOnce, jsonOf, type Reply } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { type GatewayUnderTest, startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { connectRaw } from '../kit/raw-connection.ts';
import { statusRead, transfersPath } from '../kit/request.ts';
import { metricOf, untilListening } from '../kit/status-listeners.ts';
import {
  type StubBank,
  type StubRequest,
  type StubResponse,
  startStubBank,
  statusResponse,
} from '../kit/stub-bank.ts';
import { until, within } from '../kit/within.ts';

interface Setup {
  readonly bank: StubBank;
  readonly gateway: GatewayUnderTest;
  /** Sets the next responses of the bank. */
  respond(response: StubResponse | ((request: StubRequest) => StubResponse)): void;
}

/** The gateway polls ten times per second. */
const eager = { statusCache: { pendingTtl: '100ms', pendingTtlMax: '100ms' } };
/** No poll is due during a test: a wait learns of a change in another way. */
const lazy = { statusCache: { pendingTtl: '10min', pendingTtlMax: '10min' } };

async function start(t: TestContext, sections: object = eager): Promise<Setup> {
  let respond: (request: StubRequest) => StubResponse = () => statusResponse('ACTC');
  const bank = await startStubBank(t, (request) => respond(request));
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  const gateway = await startGateway(t, { environments, ...sections });
  return {
    bank,
    gateway,
    respond(response) {
      respond = typeof response === 'function' ? response : () => response;
    },
  };
}

const token: Field = ['Authorization', 'Bearer one'];
const waiting = (seconds: number, ...headers: readonly Field[]): Call => ({
  ...statusRead,
  headers: [token, ['Prefer', `wait=${seconds}`], ...headers],
});
const statusOf = (reply: Reply) => jsonOf(reply).transactionStatus;

describe('a status read with Prefer: wait', () => {
  test('gets the changed status as soon as a poll finds it', async (t) => {
    const { gateway, bank, respond } = await start(t);
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);
    assert.equal(bank.requests[0]?.header('prefer'), '', 'the gateway has honoured it');

    respond(statusResponse('ACSC'));

    const { status, header } = await reply;
    assert.equal(status, 200);
    assert.equal(statusOf(await reply), 'ACSC');
    assert.equal(header('Preference-Applied'), 'wait=50');
    assert.match(header('ETag') ?? '', /^W\/"penstock-/);
    await untilListening([gateway], 'wait', 0);
  });

  test('polls with the credentials of the TPP and nothing else of its request', async (t) => {
    const { gateway, bank, respond } = await start(t);
    const fields: readonly Field[] = [
      ['PSU-ID', 'anna'],
      ['Consent-ID', '1'],
      ['PSU-IP-Address', '192.168.8.78'],
      ['PSU-IP-Port', '1'],
      ['Cookie', 'session=1'],
      ['Digest', 'SHA-256=1'],
      ['Date', 'Mon, 23 Nov 2026 10:00:00 GMT'],
      ['Accept-Language', 'de'],
      ['X-Custom', '1'],
    ];
    const reply = call(gateway.url, waiting(50, ...fields));
    await until(5_000, 'the bank is polled twice', () => bank.requests.length > 2);
    respond(statusResponse('ACSC'));
    await reply;

    const [first, ...polls] = bank.requests.slice(0, 3);
    for (const poll of polls) {
      assert.deepEqual(['authorization', 'psu-id', 'consent-id', 'accept'].map(poll.header), [
        'Bearer one',
        'anna',
        '1',
        'application/json',
      ]);
      for (const name of fields.slice(2).map(([name]) => name.toLowerCase()))
        if (name !== 'date') assert.equal(poll.header(name), '', name);
      assert.ok(Math.abs(Date.parse(poll.header('date')) - Date.now()) < 60_000, 'each has its own date');
      assert.equal(poll.path, first?.path);
    }
    const ids = bank.requests.map(({ header }) => header('x-request-id'));
    assert.equal(new Set(ids).size, ids.length, 'each has an X-Request-ID of its own');
  });

  test('gets the status that it knows when the time is over', async (t) => {
    const { gateway } = await start(t);

    const reply = await call(gateway.url, waiting(1));

    assert.equal(reply.status, 200);
    assert.equal(statusOf(reply), 'ACTC');
    assert.equal(reply.header('Preference-Applied'), 'wait=1');
    assert.equal(reply.header('Cache-Status'), 'penstock; hit; detail=unchanged');
    assert.equal(reply.header('Age'), '1');
  });

  test('gets 304 when the time is over if it has the tag, and the status at once if it has another tag', async (t) => {
    const { gateway, respond } = await start(t, lazy);
    const { header } = await call(gateway.url, { ...statusRead, headers: [token] });
    const tag = header('ETag') ?? '';

    const unchanged = await call(gateway.url, waiting(1, ['If-None-Match', tag]));
    assert.equal(unchanged.status, 304);
    assert.equal(unchanged.header('ETag'), tag);
    assert.equal(unchanged.header('Preference-Applied'), 'wait=1');

    respond(statusResponse('ACSC'));
    await call(gateway.url, { ...statusRead, headers: [token, ['Cache-Control', 'no-cache']] });
    const changed = await call(gateway.url, waiting(50, ['If-None-Match', tag]));
    assert.equal(changed.status, 200);
    assert.equal(statusOf(changed), 'ACSC');
  });

  test('waits for at most notifications.maxWait', async (t) => {
    const { gateway } = await start(t, { ...lazy, notifications: { maxWait: '1s' } });
    const reply = await call(gateway.url, waiting(3_000));
    assert.equal(reply.header('Preference-Applied'), 'wait=1');
  });

  test('gets a final status at once, and a response without a status', async (t) => {
    const { gateway, respond } = await start(t);
    respond(statusResponse('RJCT'));
    const final = await call(gateway.url, waiting(50));
    assert.equal(final.header('Preference-Applied'), 'wait=50');

    respond({ headers: [['Content-Type', 'text/plain']], body: 'unknown' });
    const path = `${transfersPath}/another/status`;
    const unknown = await call(gateway.url, { ...waiting(50), path });
    assert.equal(unknown.text, 'unknown');
    assert.equal(unknown.header('Preference-Applied'), undefined);
  });

  test('is an ordinary read with a directive that refuses the cache, a condition of the bank, or a signature', async (t) => {
    const { gateway, bank } = await start(t);
    const fields: readonly Field[] = [
      ['Cache-Control', 'no-store'],
      ['Cache-Control', 'no-cache'],
      ['Cache-Control', 'max-age=0'],
      ['If-None-Match', '"1"'],
      ['Signature', 'keyId="1"'],
    ];
    for (const field of fields) {
      const reply = await call(gateway.url, waiting(50, field));
      assert.equal(reply.status, 200, String(field));
      assert.equal(reply.header('Preference-Applied'), undefined);
      assert.equal(bank.requests.at(-1)?.header('prefer'), 'wait=50');
    }
    const path = `${transfersPath}/never-read/status`;
    const cached = await call(gateway.url, { ...waiting(50, ['Cache-Control', 'only-if-cached']), path });
    assert.equal(cached.status, 504);
  });

  test('is an ordinary read while the cache is off', async (t) => {
    const { gateway, bank } = await start(t, { statusCache: { enabled: false } });
    const reply = await call(gateway.url, waiting(50));
    assert.equal(reply.header('Preference-Applied'), undefined);
    assert.equal(bank.requests[0]?.header('prefer'), 'wait=50');
  });

  test('gets the error of its own first read, and does not wait', async (t) => {
    const { gateway, respond } = await start(t);
    respond({ status: 403, body: 'forbidden' });
    const reply = await call(gateway.url, waiting(50));
    assert.equal(reply.status, 403);
    assert.equal(reply.header('Preference-Applied'), undefined);
  });

  test('gets the refusal of the bank when its credentials are not accepted any more', async (t) => {
    const { gateway, respond } = await start(t);
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);
    respond({ status: 401, body: 'expired' });
    assert.equal((await reply).status, 401);
  });

  test('continues to wait while the bank fails', async (t) => {
    const { gateway, respond } = await start(t);
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);
    respond({ status: 503 });
    await until(10_000, 'a poll fails', async () => {
      return (await metricOf(gateway, 'penstock_polls_total', { outcome: 'failed' })) > 0;
    });
    respond(statusResponse('ACSC'));
    assert.equal(statusOf(await reply), 'ACSC');
  });

  test('continues to wait while the bank shows a page without a status', async (t) => {
    const { gateway, bank, respond } = await start(t);
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);
    const before = bank.requests.length;
    respond({ headers: [['Content-Type', 'text/html']], body: '<html>Maintenance</html>' });
    await until(20_000, 'the page is read', () => bank.requests.length > before + 2);
    respond(statusResponse('ACSC'));
    assert.equal(statusOf(await reply), 'ACSC');
  });

  test('reads the status itself if the bank refuses what polls leave out', async (t) => {
    const { gateway, bank, respond } = await start(t);
    const answer = (code: string) => (request: StubRequest) =>
      request.header('psu-ip-address') === '' ? { status: 400 } : statusResponse(code);
    respond(answer('ACTC'));
    const reply = call(gateway.url, waiting(50, ['PSU-IP-Address', '192.168.8.78']));
    await untilListening([gateway], 'wait', 1);
    await until(20_000, 'a poll is refused', () => bank.requests.length > 1);
    respond(answer('ACSC'));
    assert.equal(statusOf(await reply), 'ACSC');
  });

  test('is answered after a write of the TPP has changed the status', async (t) => {
    const { gateway, respond } = await start(t, lazy);
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);
    respond(({ method }) => (method === 'DELETE' ? { status: 204 } : statusResponse('CANC')));

    const path = `${transfersPath}/1234-wertiq-983`;
    assert.equal((await call(gateway.url, { method: 'DELETE', path, headers: [token] })).status, 204);

    assert.equal(statusOf(await reply), 'CANC');
  });

  test('is answered with a response of its own when another user of the tenant sees the change', async (t) => {
    const { gateway, respond } = await start(t, lazy);
    const forCaller = (code: string) => (request: StubRequest) =>
      statusResponse(code, { generatedFor: request.header('authorization') });
    respond(forCaller('ACTC'));
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);
    respond(forCaller('ACSC'));

    const other: Field = ['Authorization', 'Bearer two'];
    const seen = await call(gateway.url, { ...statusRead, headers: [other] });

    assert.equal(jsonOf(seen).generatedFor, 'Bearer two');
    assert.deepEqual(jsonOf(await reply), { transactionStatus: 'ACSC', generatedFor: 'Bearer one' });
  });

  test('is answered when a read of the payment, or of an authorisation that has ended, shows the change', async (t) => {
    const { gateway, respond } = await start(t, lazy);
    const paths = [`${transfersPath}/1234-wertiq-983`, `${transfersPath}/1234-wertiq-983/authorisations/1`];
    for (const [at, path] of paths.entries()) {
      const before = `AC${at}`;
      respond(statusResponse(before));
      await call(gateway.url, { ...statusRead, headers: [token, ['Cache-Control', 'no-cache']] });
      await call(gateway.url, { ...statusRead, headers: [token] });
      const reply = call(gateway.url, waiting(50));
      await untilListening([gateway], 'wait', 1);
      respond(statusResponse(`AC${at + 1}`, { scaStatus: 'finalised' }));

      await call(gateway.url, { method: 'GET', path, headers: [token] });

      assert.equal(statusOf(await reply), `AC${at + 1}`, path);
    }
  });

  test('is not answered by a purge of the cache', async (t) => {
    const { gateway } = await start(t, lazy);
    const reply = call(gateway.url, waiting(2));
    await untilListening([gateway], 'wait', 1);
    const headers = [['Authorization', 'Bearer token-of-the-tests']] as const;
    const purge = { method: 'DELETE', path: '/api/status-cache', headers };
    assert.equal((await call(gateway.adminUrl, purge)).status, 204);
    assert.equal((await reply).header('Cache-Status'), 'penstock; hit; detail=unchanged');
  });

  test('is refused with OVERLOADED if as many reads of the tenant wait as notifications.maxWaiting allows', async (t) => {
    const { gateway, respond } = await start(t, { ...eager, notifications: { maxWaiting: 2 } });
    const replies = [call(gateway.url, waiting(50)), call(gateway.url, waiting(50))];
    await untilListening([gateway], 'wait', 2);

    const refused = await callOnce(gateway.url, waiting(50));

    assert.equal(refused.status, 503);
    assert.equal(refused.header('Penstock-Error'), 'OVERLOADED');
    assert.equal(refused.header('Retry-After'), '1');
    respond(statusResponse('ACSC'));
    for (const reply of replies) assert.equal(statusOf(await reply), 'ACSC');
    assert.equal((await callOnce(gateway.url, waiting(1))).status, 200, 'there is room again');
  });

  test('ends with the connection of the TPP, and so do the polls', async (t) => {
    const { gateway, bank } = await start(t);
    const disconnect = new AbortController();
    const reply = call(gateway.url, { ...waiting(50), signal: disconnect.signal });
    await untilListening([gateway], 'wait', 1);
    disconnect.abort();
    await assert.rejects(reply);
    await untilListening([gateway], 'wait', 0);
    const polled = bank.requests.length;
    await call(gateway.url, { ...waiting(1), path: `${transfersPath}/another/status` });
    const late = bank.requests.slice(polled).filter(({ path }) => path === statusRead.path);
    assert.ok(late.length <= 1, 'a poll that was on its way may still arrive');
  });

  test('continues through a reload of the configuration', async (t) => {
    const { gateway, bank, respond } = await start(t);
    const reply = call(gateway.url, waiting(50));
    await untilListening([gateway], 'wait', 1);

    await gateway.reload({
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      ...eager,
      deadlines: { read: '9s' },
    });
    respond(statusResponse('ACSC'));

    assert.equal(statusOf(await reply), 'ACSC');
  });

  test('is answered after a change with one read for each of the credentials, however many wait', async (t) => {
    const { gateway, bank, respond } = await start(t, lazy);
    const tokens = ['one', 'two', 'three', 'four'];
    const as = (name: string): Field => ['Authorization', `Bearer ${name}`];
    const waits = tokens.flatMap((name) =>
      Array.from({ length: 5 }, () =>
        call(gateway.url, { ...statusRead, headers: [as(name), ['Prefer', 'wait=50']] }),
      ),
    );
    await untilListening([gateway], 'wait', waits.length);
    assert.equal(bank.requests.length, tokens.length);

    respond(statusResponse('ACSP'));
    await call(gateway.url, { ...statusRead, headers: [as('another'), ['Cache-Control', 'no-cache']] });

    for (const wait of waits) assert.equal(statusOf(await wait), 'ACSP');
    const polls = await metricOf(gateway, 'penstock_polls_total');
    assert.equal(bank.requests.length, 2 * tokens.length + 1 + polls);
    const reads = await metricOf(gateway, 'penstock_status_reads_total');
    assert.equal(reads, waits.length + 1, 'each request of a TPP is counted once');
  });

  test('works over HTTP/1.0', async (t) => {
    const { gateway, respond } = await start(t);
    const tpp = await connectRaw(gateway.port);
    t.after(tpp.destroy);
    tpp.send(
      `GET ${statusRead.path} HTTP/1.0\r\nX-Request-ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721\r\nPrefer: wait=50\r\n\r\n`,
    );
    await untilListening([gateway], 'wait', 1);
    respond(statusResponse('ACSC'));
    const { status, body } = await tpp.answer();
    assert.deepEqual([status, JSON.parse(body).transactionStatus], [200, 'ACSC']);
  });

  test('is measured on its own, and not as the duration of the request', async (t) => {
    const { gateway } = await start(t);
    const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
    await call(gateway.url, { ...waiting(1), requestId });

    const labels = { operation: 'getPaymentStatus' };
    const seconds = await metricOf(gateway, 'penstock_request_duration_seconds_sum', labels);
    const waited = await metricOf(gateway, 'penstock_status_wait_seconds_sum', { outcome: 'unchanged' });
    assert.ok(waited > 0.8 && seconds < waited, `${seconds} s, waited ${waited} s`);
    const line = gateway.logLines.map((one) => JSON.parse(one)).find((one) => one.requestId === requestId);
    assert.ok(line.waitedMs > 800 && line.durationMs < line.waitedMs, JSON.stringify(line));
  });
});

describe('a gateway that stops', () => {
  test('answers waiting reads at once, and closes their connections', async (t) => {
    const bank = await startStubBank(t, () => statusResponse('ACTC'));
    const gateway = await startGatewayProcess(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
    const reply = call(gateway.url, { ...waiting(50), headers: [token, ['Prefer', 'wait=50']] });
    await untilListening([gateway], 'wait', 1);

    gateway.command.kill('SIGTERM');

    const { status, header } = await within(20_000, 'the answer', reply);
    assert.deepEqual([status, header('Connection')], [200, 'close']);
    assert.equal(await gateway.command.exitCode(), 0);
  });
});
