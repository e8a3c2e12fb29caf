import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-connection.ts';

/*
 * Attack: the attacker shares a proxy with other TPPs, and sends a POST whose length the proxy and the gateway interpret
 * differently. Bytes that one of them takes for the end of the body are the next request for the other. The next request
 * on that connection belongs to another TPP: its payment is corrupted, or its response goes to the attacker.
 */
describe('a request with an ambiguous length', () => {
  const body = '{"a":12}';
  const ambiguous: Readonly<Record<string, readonly string[]>> = {
    'two lengths': ['Content-Length: 8', 'Content-Length: 6'],
    'the same length twice': ['Content-Length: 8', 'Content-Length: 8'],
    'a list of lengths': ['Content-Length: 8, 8'],
    'a list of one': ['Content-Length: 8,'],
    'a leading zero, octal to some': ['Content-Length: 010'],
    'a single leading zero': ['Content-Length: 08'],
    'a plus sign': ['Content-Length: +8'],
    'a minus sign': ['Content-Length: -8'],
    'a hexadecimal number': ['Content-Length: 0x8'],
    'a fraction': ['Content-Length: 8.0'],
    'an exponent': ['Content-Length: 8e0'],
    'digits of another script': ['Content-Length: \xb2'],
    'a space between digits': ['Content-Length: 1 0'],
    nothing: ['Content-Length: '],
    'more than 64 bits': ['Content-Length: 18446744073709551624'],
    'a space before the colon': ['Content-Length : 8'],
    'a tab before the colon': ['Content-Length\t: 8'],
    'a space before the name': [' Content-Length: 8'],
    'a length, then a coding': ['Content-Length: 8', 'Transfer-Encoding: chunked'],
    'a coding, then a length': ['Transfer-Encoding: chunked', 'Content-Length: 8'],
    'a length and an empty coding': ['Content-Length: 8', 'Transfer-Encoding: '],
  };

  test('A1: is refused, the connection is closed, and the bank receives nothing', async (t) => {
    const line = await startGatewayWithBank(t);
    const attacks = Object.entries(ambiguous).map(([name, fields]) =>
      t.test(`is refused with ${name}`, () =>
        assertCutOff(line, initiation(body, ...fields), [400, 'HEADER_MALFORMED']),
      ),
    );
    await Promise.all(attacks);
    await assertServes(line);
  });

  test('A1: is refused if its body is valid for a parser that prefers the transfer coding', async (t) => {
    const line = await startGatewayWithBank(t);
    for (const fields of [
      ['Content-Length: 4', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked', 'Content-Length: 4'],
    ]) {
      await assertCutOff(line, initiation('8\r\n{"a":12}\r\n0\r\n\r\n', ...fields), [
        400,
        'HEADER_MALFORMED',
      ]);
    }
  });

  test('is not one with white space around a plain length, which is accepted', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await sendRaw(gateway.port, initiation(body, 'Content-Length: \t 8 \t'));
    assert.equal(bank.requests.at(-1)?.body.toString(), body);
  });
});
