/** Ambiguous and broken requests on the admin listener: each gets one answer, and nothing is carried out. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { readAdminApi } from '../kit/admin-api.ts';
import { adminToken, type GatewayUnderTest, startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, type RawConnection } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

const body = '{"environment":"sandbox","reason":"an attack"}';
const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

/** Routes that change something, with and without a body of their own, and routes without a token. */
const requestLines = [
  'PUT /api/environments/active',
  'POST /api/environments/sandbox/preflight',
  'PUT /api/circuits/sandbox/write',
  'DELETE /api/status-cache',
  'POST /api/in-doubt/1',
  'GET /api/environments',
  'GET /health/live',
  'GET /',
  'POST /nothing',
  'GET http://[/',
];

const withToken = [`Authorization: Bearer ${adminToken}`, 'Content-Type: application/json'];

const head = (line: string, fields: readonly string[], version = 'HTTP/1.1') =>
  `${[`${line} ${version}`, 'Host: 127.0.0.1', ...fields].join('\r\n')}\r\n\r\n`;

const onAdminListener = <Value>(
  gateway: GatewayUnderTest,
  use: (connection: RawConnection) => Promise<Value>,
) => onConnection(Number(new URL(gateway.adminUrl).port), use);

/** What the gateway does with a request of an operator. */
async function startWithUnchangedState(t: TestContext) {
  const { bank, gateway } = await startGatewayWithBank(t);
  const audit = async () => (await readAdminApi(gateway, '/api/audit')).records;
  const before = { audit: await audit(), bankRequests: bank.requests.length };
  return {
    bank,
    gateway,
    async assertNothingChanged() {
      assert.deepEqual(await audit(), before.audit);
      assert.equal(bank.requests.length, before.bankRequests, 'the bank was called');
      assert.equal((await readAdminApi(gateway, '/api/environments')).version, 1);
    },
  };
}

/** Sends these bytes one after the other, each when the gateway has had time to answer the ones before. */
async function assertSingleRefusal(
  gateway: GatewayUnderTest,
  packets: readonly string[],
  what: string,
): Promise<void> {
  await onAdminListener(gateway, async (connection) => {
    for (const packet of packets) {
      connection.send(packet);
      await readAdminApi(gateway, '/api/circuits'); // a round trip on another connection
    }
    const answer = await connection.answer();
    assert.equal(answer.status, 400, what);
    assert.equal(answer.headers.get('connection'), 'close', what);
    assert.equal(answer.headers.get('content-type'), 'application/json', what);
    assert.equal(typeof JSON.parse(answer.body).error, 'string', what);
    await connection.closed();
    assert.equal(connection.unread(), '', what);
  });
}

describe('a broken chunked body on the admin listener', () => {
  const broken: Readonly<Record<string, string>> = {
    'a size that is no number': `zz\r\n${body}\r\n0\r\n\r\n`,
    'a chunk longer than its size': `4\r\n${body}\r\n0\r\n\r\n`,
    'a broken chunk behind a complete one': `${chunked.slice(0, -5)}zz\r\n\r\n`,
    'a folded trailer': `${chunked.slice(0, -2)}X-A: b\r\n c\r\n\r\n`,
  };
  for (const [name, bytes] of Object.entries(broken)) {
    test(`gets one answer, and no action runs: ${name}`, async (t) => {
      const { gateway, assertNothingChanged } = await startWithUnchangedState(t);
      for (const line of requestLines) {
        for (const fields of [withToken, []]) {
          const start = head(line, [...fields, 'Transfer-Encoding: chunked']);
          await assertSingleRefusal(gateway, [start + bytes], line);
          await assertSingleRefusal(gateway, [start, bytes], `${line}, in two packets`);
        }
      }
      await assertNothingChanged();
    });
  }

  test('gets no answer and runs no action if the operator disconnects in it', async (t) => {
    const { gateway, assertNothingChanged } = await startWithUnchangedState(t);
    for (const line of requestLines) {
      await onAdminListener(gateway, async (connection) => {
        connection.send(head(line, [...withToken, 'Transfer-Encoding: chunked']) + chunked.slice(0, -5));
        await readAdminApi(gateway, '/api/circuits');
        assert.equal(connection.unread(), '', line);
      });
    }
    await assertNothingChanged();
  });
});

describe('an ambiguous request head on the admin listener', () => {
  const ambiguous: Readonly<Record<string, readonly string[]>> = {
    Transfer_Encoding: ['Transfer_Encoding: chunked'],
    Content_Length: ['Content_Length: 5'],
    'a coding and a length': ['Transfer-Encoding: chunked', 'Content-Length: 5'],
    'two codings': ['Transfer-Encoding: gzip, chunked'],
    'a repeated Authorization': ['Authorization: Bearer other', `Authorization: Bearer ${adminToken}`],
    'two hosts': ['Host: localhost'],
  };
  for (const [name, fields] of Object.entries(ambiguous)) {
    test(`gets one answer, 400, and no action runs: ${name}`, async (t) => {
      const { gateway, assertNothingChanged } = await startWithUnchangedState(t);
      for (const line of requestLines)
        await assertSingleRefusal(gateway, [head(line, [...withToken, ...fields]) + chunked], line);
      await assertNothingChanged();
    });
  }

  test('gets one answer, 400, and no action runs: another protocol', async (t) => {
    const { gateway, assertNothingChanged } = await startWithUnchangedState(t);
    for (const line of ['POST /api/environments/sandbox/preflight', 'GET /health/live'])
      await assertSingleRefusal(gateway, [head(line, withToken, 'RTSP/1.0')], line);
    await assertNothingChanged();
  });
});

describe('a request on the admin listener', () => {
  const switchRequest = [...withToken, 'Transfer-Encoding: chunked'];

  test('is carried out with a chunked body, in any number of packets', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    await onAdminListener(gateway, async (connection) => {
      connection.send(head('PUT /api/environments/active', switchRequest) + chunked);
      assert.equal((await connection.answer()).status, 200);
      connection.send(head('PUT /api/environments/active', switchRequest));
      for (const bytes of chunked.match(/.{1,20}/gs) ?? []) {
        connection.send(bytes);
        await connection.sent();
      }
      assert.equal((await connection.answer()).status, 200);
    });
  });

  test('gets its own answer before bytes behind it are refused', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await onAdminListener(gateway, async (connection) => {
      connection.send(`${head('POST /api/environments/sandbox/preflight', withToken)}no request\r\n\r\n`);
      const { status, body: report } = await connection.answer();
      assert.deepEqual([status, JSON.parse(report).environment ?? 'sandbox'], [200, 'sandbox']);
      assert.equal((await connection.answer()).status, 400);
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    await until(5_000, 'the bank is called', () => bank.requests.length > 0);
  });

  test('may wait for 100 Continue', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    await onAdminListener(gateway, async (connection) => {
      const fields = [...withToken, `Content-Length: ${body.length}`, 'Expect: 100-continue'];
      connection.send(head('PUT /api/environments/active', fields));
      await until(5_000, 'the gateway wants the body', () => connection.unread().includes('100 Continue'));
      connection.send(body);
      assert.equal((await connection.answer()).status, 200);
    });
  });

  test('without a token gets 401 also if its body is too large', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const large = 'x'.repeat(100_000);
    for (const [fields, status] of [
      [[], 401],
      [withToken, 400],
    ] as const) {
      await onAdminListener(gateway, async (connection) => {
        connection.send(
          head('PUT /api/environments/active', [...fields, `Content-Length: ${large.length}`]) + large,
        );
        assert.equal((await connection.answer()).status, status);
      });
    }
  });
});
