import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertCutOff, assertServes, initiation, valuesAtBank } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-connection.ts';

const body = '{"a":12}';
const chunked = `8\r\n${body}\r\n0\r\n\r\n`;

/*
 * Attack: one parser finds "chunked" in the field and reads chunks; the other one finds an unknown coding and reads by
 * length, or reads no body. The attacker's next chunk is then the victim's next request.
 */
describe('a transfer coding that is not exactly "chunked"', () => {
  const codings: readonly string[] = [
    ...[',chunked', 'chunked,', ', chunked', 'gzip, chunked', 'identity, chunked', 'chunked, identity'],
    ...[
      'chunked, chunked',
      'xchunked',
      'chunkedx',
      'chunked;q=1',
      'chunked;',
      '"chunked"',
      'identity',
      'gzip',
    ],
    ...[
      'Chunked',
      'CHUNKED',
      'cHuNkEd',
      'chun ked',
      'chunked\x0b',
      '\x0bchunked',
      'chunked\0',
      '\xa0chunked',
      '',
    ],
  ];

  test('A2: is refused, the connection is closed, and the bank receives nothing', async (t) => {
    const line = await startGatewayWithBank(t);
    const attacks = codings.map((coding) =>
      t.test(`is refused if it is ${JSON.stringify(coding)}`, () =>
        assertCutOff(line, initiation(chunked, `Transfer-Encoding: ${coding}`), [400, 'HEADER_MALFORMED']),
      ),
    );
    await Promise.all(attacks);
    await assertServes(line);
  });

  test('A2: is refused if it is repeated, folded, or has a space before the colon', async (t) => {
    const line = await startGatewayWithBank(t);
    const twice = ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'];
    const split = ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'];
    const folded = ['Transfer-Encoding:', ' chunked'];
    const spaced = ['Transfer-Encoding : chunked'];
    await Promise.all(
      [twice, split, folded, spaced].map((fields) =>
        assertCutOff(line, initiation(chunked, ...fields), [400, 'HEADER_MALFORMED']),
      ),
    );
  });

  test('is required: a body that is exactly chunked reaches the bank with a plain length', async (t) => {
    const line = await startGatewayWithBank(t);
    await sendRaw(line.gateway.port, initiation(chunked, 'Transfer-Encoding: chunked'));
    assert.deepEqual(valuesAtBank(line, 'transfer-encoding'), []);
    assert.deepEqual(valuesAtBank(line, 'content-length'), ['8']);
    assert.equal(line.bank.requests.at(-1)?.body.toString(), body);
  });
});

/*
 * Attack: the attacker breaks the chunks, so that the part before is sent to the bank as a complete body, or two parsers
 * find the next chunk at different positions.
 */
describe('a malformed chunked body', () => {
  const broken: Readonly<Record<string, string>> = {
    'a size that is no number': `zz\r\n${body}\r\n0\r\n\r\n`,
    'a size with a sign': `+8\r\n${body}\r\n0\r\n\r\n`,
    'a size in C notation': `0x8\r\n${body}\r\n0\r\n\r\n`,
    'a size beyond 64 bits': `fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`,
    'no line end behind the chunk': `8\r\n${body}0\r\n\r\n`,
    'a bare LF behind the size': `8\n${body}\r\n0\r\n\r\n`,
    'a bare LF behind the chunk': `8\r\n${body}\n0\r\n\r\n`,
    'a bare CR in an extension': `8;a\rb\r\n${body}\r\n0\r\n\r\n`,
    'a bare LF in an extension': `8;a\nb\r\n${body}\r\n0\r\n\r\n`,
    'a NUL in an extension': `8;a\0b\r\n${body}\r\n0\r\n\r\n`,
    'a chunk longer than its size': `4\r\n${body}\r\n0\r\n\r\n`,
    'an endless extension': `8;${'a'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`,
    'a folded trailer': `8\r\n${body}\r\n0\r\nX-A: b\r\n c\r\n\r\n`,
  };

  test('A4: is refused, the connection is closed, and the bank receives nothing', async (t) => {
    const line = await startGatewayWithBank(t);
    const attacks = Object.entries(broken).map(([name, bytes]) =>
      t.test(`is refused with ${name}`, () =>
        assertCutOff(line, initiation(bytes, 'Transfer-Encoding: chunked'), [400, 'HEADER_MALFORMED']),
      ),
    );
    await Promise.all(attacks);
    await assertServes(line);
  });

  test('A4: is refused with 431 if its trailer is larger than the limit of a head', async (t) => {
    const line = await startGatewayWithBank(t);
    const bytes = `8\r\n${body}\r\n0\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`;
    await assertCutOff(line, initiation(bytes, 'Transfer-Encoding: chunked'), [431, 'HEADERS_TOO_LARGE']);
  });

  test('A4: does not add the fields of its trailer to the request for the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    const bytes = `8\r\n${body}\r\n0\r\nAuthorization: Bearer forged\r\nPSU-ID: forged\r\n\r\n`;
    await sendRaw(
      line.gateway.port,
      initiation(bytes, 'Transfer-Encoding: chunked', 'Trailer: Authorization'),
    );
    for (const name of ['authorization', 'psu-id', 'trailer']) assert.deepEqual(valuesAtBank(line, name), []);
  });
});
