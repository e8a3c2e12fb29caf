import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw.ts';

/*
 * The story: an attacker shares a proxy with other TPPs. It sends a POST whose length the proxy and the gateway
 * understand differently. What the one takes for the end of the body, the other takes for the next request, and the
 * next request on that connection is another TPP's: its payment is spoilt, or its answer goes to the attacker.
 */
describe('a body whose length can be understood in two ways', () => {
  const body = '{"a":12}';
  const doubtful: Readonly<Record<string, readonly string[]>> = {
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

  test('A1: is refused, the connection is closed, and nothing of it reaches the bank', async (t) => {
    const line = await startLine(t);
    const attacks = Object.entries(doubtful).map(([name, fields]) =>
      t.test(name, () => assertCutOff(line, initiation(body, ...fields), [400, 'HEADER_MALFORMED'])),
    );
    await Promise.all(attacks);
    await assertServes(line);
  });

  test('A1: is refused no less when the body looks chunked to whoever believes the coding', async (t) => {
    const line = await startLine(t);
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

  test('spaces around a plain length mean nothing', async (t) => {
    const { bank, gateway } = await startLine(t);
    await sendRaw(gateway.port, initiation(body, 'Content-Length: \t 8 \t'));
    assert.equal(bank.requests.at(-1)?.body.toString(), body);
  });
});
