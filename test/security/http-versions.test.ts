import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertCutOff,
  assertRefused,
  assertServes,
  initiation,
  newStatusPath,
  refusalOf,
  requestText,
  statusRead,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';

/*
 * Attack: other versions of HTTP have other rules for the end of a request. The attacker names a version that the gateway
 * does not implement, and smuggles a request by its rules.
 */
describe('a request in another version of HTTP', () => {
  test('A7: is refused for HTTP/0.9, 1.2, 2.0, 3.0 and invalid versions, and the connection is closed', async (t) => {
    const line = await startGatewayWithBank(t);
    const versions = [
      'HTTP/0.9',
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/3.0',
      'HTTP/1.',
      'HTTP/1',
      'HTTP/01.1',
      'http/1.1',
    ];
    await Promise.all(
      [...versions, 'HTTP/1.1.1', 'HTTPS/1.1', 'ICAP/1.0'].map((version) =>
        t.test(`is refused for ${version}`, () =>
          assertCutOff(line, requestText(`GET ${newStatusPath()} ${version}`), [400, 'HEADER_MALFORMED']),
        ),
      ),
    );
    await assertServes(line);
  });

  test('A7: is refused without a version', async (t) => {
    const line = await startGatewayWithBank(t);
    await assertRefused(line, `GET ${newStatusPath()}\r\n\r\n`, [400, 'HEADER_MALFORMED']);
  });

  test('A7: is refused if it is an HTTP/2 connection preface', async (t) => {
    const line = await startGatewayWithBank(t);
    await assertRefused(line, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 'HEADER_MALFORMED']);
  });

  test('A7: is served in HTTP/1.0 with a plain length, and the connection is closed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      connection.send(requestText(`GET ${newStatusPath()} HTTP/1.0`));
      const { headers, body } = await connection.answer();
      assert.equal(headers.get('penstock-error'), undefined);
      assert.equal(headers.get('transfer-encoding'), undefined);
      assert.equal(headers.get('content-length'), String(body.length));
      await connection.closed();
    });
    assert.equal(bank.requests.at(-1)?.httpVersion, '1.1');
  });

  test('A7: keeps the connection open in HTTP/1.0 with Connection: keep-alive', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      for (const _ of [1, 2]) {
        connection.send(requestText(`GET ${newStatusPath()} HTTP/1.0`, ['Connection: keep-alive']));
        assert.equal((await connection.answer()).headers.get('connection'), 'keep-alive');
      }
    });
  });

  test('A7: is refused in HTTP/1.0 with chunks', async (t) => {
    const line = await startGatewayWithBank(t);
    const bytes = initiation('2\r\n{}\r\n0\r\n\r\n', 'Transfer-Encoding: chunked');
    await assertCutOff(line, bytes.replace('HTTP/1.1', 'HTTP/1.0'), [400, 'HEADER_MALFORMED']);
  });
});

/*
 * Attack: Node's parser reads RTSP request lines as well. A proxy in front that knows RTSP, or does not, applies other rules
 * than the gateway.
 */
describe('a request line of RTSP', () => {
  const lines = (['GET', 'POST'] as const).flatMap((method) =>
    ['RTSP/1.0', 'RTSP/1.1'].map((protocol) => ({ method, protocol })),
  );

  function rtspRequest(method: 'GET' | 'POST', protocol: string): string {
    const bytes = method === 'GET' ? statusRead() : initiation('{}', 'Content-Length: 2');
    return bytes.replace('HTTP/1.1', protocol);
  }

  test('A7: is refused, the connection is closed, and the bank receives nothing', async (t) => {
    const line = await startGatewayWithBank(t);
    await Promise.all(
      lines.map(({ method, protocol }) =>
        t.test(`is refused for ${method} with ${protocol}`, () =>
          assertCutOff(line, rtspRequest(method, protocol), [400, 'HEADER_MALFORMED']),
        ),
      ),
    );
    await assertServes(line);
  });

  test('A7: is refused on a connection that has served HTTP requests, one of them with a body', async (t) => {
    const line = await startGatewayWithBank(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(statusRead());
      assert.equal(refusalOf(await connection.answer())[1], 'none');
      connection.send(initiation('{}', 'Content-Length: 2') + rtspRequest('POST', 'RTSP/1.0'));
      assert.deepEqual(refusalOf(await connection.answer()), [201, 'none']);
      assert.deepEqual(refusalOf(await connection.answer()), [400, 'HEADER_MALFORMED']);
      await connection.closed();
    });
    assert.equal(line.bank.payments.length, 1);
  });

  test('is accepted in a body: bodies are opaque', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const body = 'GET /berlingroup/v1/payments RTSP/1.0\r\nCSeq: 1\r\n\r\n';
    const bytes = initiation(body, `Content-Length: ${body.length}`);
    await onConnection(gateway.port, async (connection) => {
      connection.send(bytes);
      await connection.answer();
    });
    assert.equal(bank.requests.at(-1)?.body.toString(), body);
  });
});
