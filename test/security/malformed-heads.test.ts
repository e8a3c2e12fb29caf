import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type AttackTarget,
  assertCutOff,
  assertServes,
  initiation,
  newStatusPath,
  requestText,
  statusRead,
  valuesAtBank,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

/*
 * Attack: a line end that only one of two parsers accepts hides a field from the other. Behind it is an Authorization, a
 * Content-Length or a complete request that the first parser never checked.
 */
describe('an ambiguous head of a request', () => {
  const fields: Readonly<Record<string, string>> = {
    'a folded line': 'X-A: b\r\n Content-Length: 5',
    'a line folded by a tab': 'X-A: b\r\n\tContent-Length: 5',
    'a bare LF': 'X-A: b\nContent-Length: 5',
    'a bare CR': 'X-A: b\rContent-Length: 5',
    'CR CR LF': 'X-A: b\r',
    'a NUL in a value': 'X-A: b\0c',
    'a NUL in a name': 'X-\0A: b',
    'a control character in a value': 'X-A: b\x01c',
    'a DEL in a value': 'X-A: b\x7fc',
    'a space in a name': 'X A: b',
    'no colon': 'X-A',
    'no name': ': b',
    'a name in quotes': '"X-A": b',
    'a name outside ASCII': 'X-\xc4: b',
    'a name with an underscore': 'Transfer_Encoding: chunked',
    'another name with an underscore': 'X_Request_ID: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    'the name __proto__': '__proto__: x',
  };

  test('A3, A5: is refused, and the connection is closed', async (t) => {
    const line = await startGatewayWithBank(t);
    const attacks = Object.entries(fields).map(([name, field]) =>
      t.test(`with ${name} is refused`, () =>
        assertCutOff(line, statusRead(field), [400, 'HEADER_MALFORMED']),
      ),
    );
    await Promise.all(attacks);
    await assertServes(line);
  });

  test('A3: is refused for bare line ends and unusual spaces in the request line', async (t) => {
    const line = await startGatewayWithBank(t);
    const path = newStatusPath();
    const lines = [`GET ${path} HTTP/1.1\nX-A: b`, `GET\t${path} HTTP/1.1`, `GET ${path}\tHTTP/1.1`];
    const more = [
      ` GET ${path} HTTP/1.1`,
      `GET ${path} HTTP/1.1 `,
      `GET ${path} HTTP/1.1\r`,
      `get ${path} HTTP/1.1`,
    ];
    await Promise.all(
      [...lines, ...more].map((first) => assertCutOff(line, requestText(first), [400, 'HEADER_MALFORMED'])),
    );
  });

  test('A6: is refused in the standard’s format if it has no Host or two', async (t) => {
    const line = await startGatewayWithBank(t);
    const none = statusRead().replace('Host: gateway.example\r\n', '');
    for (const bytes of [none, statusRead('Host: gateway.example'), statusRead('host: evil.example')]) {
      await assertCutOff(line, bytes, [400, 'HEADER_MALFORMED']);
    }
  });

  test('A13: may have fields with the names of inherited object properties, which reach the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf'];
    await sendRaw(line.gateway.port, statusRead(...names.map((name) => `${name}: own`)));
    for (const name of names) assert.deepEqual(valuesAtBank(line, name.toLowerCase()), ['own']);
  });
});

describe('a HEAD request that is refused', () => {
  /** Everything that the gateway sends before it closes the connection. */
  const answerTo = (line: AttackTarget, bytes: string) =>
    onConnection(line.gateway.port, async (connection) => {
      connection.send(bytes);
      await connection.closed();
      return connection.unread();
    });

  test('gets no body, also if it is not valid HTTP', async (t) => {
    const line = await startGatewayWithBank(t);
    const path = newStatusPath();
    const first = `HEAD ${path} HTTP/1.1`;
    const malformed = [
      requestText(first, ['X A: b']),
      requestText(first, ['X-A: b\r\n Content-Length: 5']),
      requestText(first, ['X-A: GET /\0']),
      requestText(first, [`X-A: ${'a'.repeat(20_000)}`]),
      requestText(first, ['Content-Length: 1', 'Transfer-Encoding: chunked']),
      requestText(first, ['X-A: b\nX-B: c']),
      requestText(first).replace('Host: gateway.example\r\n', ''),
      requestText(`HEAD ${path} HTTP/9.9`),
      requestText(`HEAD ${path} x HTTP/1.1`),
      requestText('HEAD /\x01 HTTP/1.1'),
    ];
    for (const bytes of malformed) {
      const text = await answerTo(line, bytes);
      assert.match(
        text,
        /^HTTP\/1\.1 4\d\d [\s\S]*\r\nPenstock-Error: H[\s\S]*\r\nContent-Length: \d+\r\n/,
        bytes,
      );
      assert.match(text, /\r\n\r\n$/, bytes);
    }
    const behind = `${initiation('{"a":"b"}', 'Content-Length: 9')}${requestText(first, ['X A: b'])}`;
    assert.match(await answerTo(line, behind), /HTTP\/1\.1 400 [\s\S]*\r\n\r\n$/);
    const behindHead = `${requestText(first)}${requestText(`GET ${path} HTTP/1.1`, ['X A: b'])}`;
    assert.match(await answerTo(line, behindHead), /HTTP\/1\.1 400 [\s\S]*\r\n\r\n\{.+\}$/);
  });

  test('leaves the connection usable for the next request', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      const fields = ['Transfer-Encoding: chunked'];
      connection.send(requestText(`HEAD ${newStatusPath()} HTTP/1.1`));
      connection.send(requestText(`HEAD ${newStatusPath()} HTTP/1.1`, fields, '0\r\n\r\n'));
      connection.send(requestText('GET /nowhere HTTP/1.1'));
      const all = /^(?:HTTP\/1\.1 405 [^{]*?\r\n\r\n){2}HTTP\/1\.1 404 [\s\S]*\}$/;
      await until(5_000, 'all responses', () => all.test(connection.unread()));
    });
  });
});
