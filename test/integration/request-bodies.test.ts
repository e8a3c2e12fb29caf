/** Request bodies reach the bank byte for byte, so that the TPP's digests and signatures stay valid. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { call, pairs } from '../kit/call.ts';
import { startDifferential } from '../kit/differential.ts';
import { exampleOf } from '../kit/examples.ts';
import { valuesOf } from '../kit/fields.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';
import { initiation, statusRead, transfersPath } from '../kit/request.ts';

const payments = '/berlingroup/v1/payments';
const xml = exampleOf('initiate-payment-pain001').body ?? '';
const json = exampleOf('initiate-payment-json').body ?? '';
const multipart = exampleOf('initiate-periodic-payment-multipart').body ?? '';
const multipartType = 'multipart/form-data; boundary=AaaBbbCcc';

/** Body, content type, path, and the bank's status. */
const bodies: Readonly<Record<string, readonly [Buffer, type: string, path: string, status: number]>> = {
  'JSON with unusual white space and CRLF': [
    Buffer.from(`\r\n\t ${json.replaceAll(',', ' ,\r\n\t')}\r\n\r\n`),
    'application/json',
    transfersPath,
    201,
  ],
  'JSON with repeated members, numbers of high precision, and escapes': [
    Buffer.from('{"a":1,"a":2,"amount":123.500000000000000000001,"name":"M\\u00fcller \\/ \\ud83d"}'),
    'application/json;charset=UTF-8',
    transfersPath,
    201,
  ],
  'JSON that is not UTF-8': [
    Buffer.from('{"creditorName":"Müller"}', 'latin1'),
    'application/json',
    transfersPath,
    201,
  ],
  'JSON with a byte order mark, which the bank refuses': [
    Buffer.from(`\ufeff${json}`),
    'application/json',
    transfersPath,
    400,
  ],
  'XML in UTF-8 with a byte order mark': [
    Buffer.from(`\ufeff${xml}`),
    'application/xml; charset=utf-8',
    `${payments}/pain.001-sepa-credit-transfers`,
    201,
  ],
  'XML in latin-1': [
    Buffer.from(
      `<?xml version="1.0" encoding="ISO-8859-1"?>\r\n${xml.replace('PSU Name', 'Müller')}`,
      'latin1',
    ),
    'application/xml',
    `${payments}/pain.001-sepa-credit-transfers`,
    201,
  ],
  'a standing order in multipart format': [
    Buffer.from(`a preamble\r\n${multipart}an epilogue`),
    multipartType,
    '/berlingroup/v1/periodic-payments/pain.001-sepa-credit-transfers',
    201,
  ],
  'all 256 byte values, which the bank refuses': [
    Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
    'application/octet-stream',
    transfersPath,
    400,
  ],
};

describe('the Digest of a request', () => {
  for (const [what, [body, type, path, status]] of Object.entries(bodies)) {
    test(`is valid at the bank for ${what}`, async (t) => {
      const { send, bank, directBank } = await startDifferential(t);
      for (const hash of ['SHA-256', 'SHA-512']) {
        const headers = [
          ['PSU-IP-Address', '192.168.8.78'],
          ['Content-Type', type],
          ['TPP-Explicit-Authorisation-Preferred', 'true'],
          ['Digest', `${hash}=${digestOf(hash, body)}`],
        ] as const;
        for (const one of [bank, directBank]) one.nextPaymentId('known');
        assert.equal((await send({ method: 'POST', path: () => path, headers, body })).status, status);
        assert.deepEqual(bank.requests.at(-1)?.body, body);
      }
    });
  }

  test('is valid at the bank for an empty body', async (t) => {
    const { send, bank, directBank } = await startDifferential(t);
    for (const one of [bank, directBank]) one.nextPaymentId('known');
    const headers = [...initiation.headers, ['TPP-Decoupled-Preferred', 'true']] as const;
    await send({ method: 'POST', path: () => transfersPath, headers, body: initiation.body });

    const digest = ['Digest', `SHA-256=${digestOf('SHA-256', Buffer.alloc(0))}`] as const;
    const path = () => `${transfersPath}/known/authorisations`;

    assert.equal((await send({ method: 'POST', path, headers: [digest] })).status, 201);
    assert.equal((await send({ method: 'GET', path, headers: [digest] })).status, 200);
  });

  test('is refused by the bank if it does not match the body', async (t) => {
    const { send } = await startDifferential(t);
    const headers = [...initiation.headers, ['Digest', 'SHA-256=bm90IHRoZSBoYXNo'] as const];
    const { status, text } = await send({ ...initiation, path: () => transfersPath, headers });
    assert.equal(status, 401);
    assert.match(text, /SIGNATURE_INVALID/);
  });
});

describe('a body that is sent in parts', () => {
  test('in chunks with extensions and a trailer reaches the bank with its length and without the trailer', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      connection.send(`${head()}Transfer-Encoding: chunked\r\nTrailer: X-Later\r\n\r\n`);
      connection.send(`5;name=value\r\n${json.slice(0, 5)}\r\n`);
      connection.send(`${(json.length - 5).toString(16).toUpperCase()}\r\n${json.slice(5)}\r\n`);
      connection.send('0\r\nX-Later: smuggled\r\n\r\n');

      assert.equal((await connection.answer()).status, 201);
      const fields = pairs(bank.requests[0]?.rawHeaders ?? []);
      assert.equal(bank.requests[0]?.body.toString(), json);
      assert.deepEqual(valuesOf(fields, 'Content-Length'), [String(json.length)]);
      for (const name of ['Transfer-Encoding', 'Trailer', 'X-Later'])
        assert.deepEqual(valuesOf(fields, name), []);
    });
  });

  test('byte by byte reaches the bank only after its last byte', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      connection.send(`${head()}Content-Length: ${json.length}\r\nExpect: 100-continue\r\n\r\n`);
      for (const byte of json.slice(0, -1)) connection.send(byte);
      assert.equal((await call(gateway.url, statusRead)).status, 404); // another request is completed before
      assert.equal(bank.requests.length, 1);
      connection.send(json.slice(-1));

      assert.equal((await connection.answer()).status, 201);
      assert.equal(bank.requests[1]?.body.toString(), json);
    });
  });

  test('reaches the bank if it has exactly the maximum size', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { listen: { maxBody: '64KiB' } });
    await onConnection(gateway.port, async (connection) => {
      const body = json.padEnd(64 * 1024, ' ');
      connection.send(`${head()}Content-Length: ${body.length}\r\n\r\n${body}`);

      assert.equal((await connection.answer()).status, 201);
      assert.equal(bank.requests[0]?.body.length, 64 * 1024);
    });
  });
});

const digestOf = (hash: string, body: Buffer) =>
  createHash(hash.replace('-', '').toLowerCase()).update(body).digest('base64');

const head = () =>
  [
    `POST ${transfersPath} HTTP/1.1`,
    'Host: gateway.example',
    `X-Request-ID: ${randomUUID()}`,
    'PSU-IP-Address: 192.168.8.78',
    'Content-Type: application/json',
    '',
  ].join('\r\n');
