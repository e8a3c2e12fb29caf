import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertCutOff,
  assertServes,
  newStatusPath,
  requestText,
  statusRead,
  valuesAtBank,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-connection.ts';

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
