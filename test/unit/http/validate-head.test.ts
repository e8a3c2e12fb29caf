import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { validateHead } from '../../../src/http/validate-head.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';

const host = ['Host', 'gateway.example'] as const;

const refuses = (fields: HeaderFields, code: string, version = '1.1') =>
  assert.throws(() => validateHead([host, ...fields], version), { code }, JSON.stringify(fields));
const accepts = (fields: HeaderFields, version = '1.1') =>
  assert.doesNotThrow(() => validateHead([host, ...fields], version), JSON.stringify(fields));

describe('validateHead', () => {
  test('accepts 100 fields and refuses 101, repeated ones included', () => {
    const fields = (count: number) => Array.from({ length: count }, () => ['X-Some', 'value'] as const);
    accepts(fields(99));
    refuses(fields(100), 'HEADERS_TOO_LARGE');
  });

  test('accepts a Content-Length only as plain digits within the range of exact numbers', () => {
    for (const length of ['0', '1', '999999999999999']) accepts([['Content-Length', length]]);
    for (const length of ['', '00', '01', '+1', '-1', '1.0', '1e3', '0x1', '1,1', '1 1', '9'.repeat(16)]) {
      refuses([['Content-Length', length]], 'HEADER_MALFORMED');
    }
  });

  test('refuses every protocol except HTTP/1.1 and HTTP/1.0', () => {
    for (const version of ['0.9', '1.2', '2.0', 'RTSP', '']) refuses([], 'HEADER_MALFORMED', version);
    for (const version of ['1.1', '1.0']) accepts([], version);
  });

  test('accepts a Transfer-Encoding only if it is exactly chunked, in HTTP/1.1', () => {
    accepts([['Transfer-Encoding', 'chunked']]);
    for (const coding of ['Chunked', 'gzip, chunked', 'chunked, chunked', 'identity', '', 'chunked;a=b']) {
      refuses([['Transfer-Encoding', coding]], 'HEADER_MALFORMED');
    }
    refuses([['Transfer-Encoding', 'chunked']], 'HEADER_MALFORMED', '1.0');
  });

  test('refuses a repeated field that must occur once', () => {
    const names = [
      ...['Authorization', 'Consent-ID', 'Content-Length', 'Content-Type', 'Date', 'Digest', 'Signature'],
      ...['Penstock-Environment', 'PSU-ID', 'PSU-Corporate-ID', 'PSU-IP-Address', 'TPP-Redirect-URI'],
      ...['TPP-Signature-Certificate', 'X-API-Key', 'Content-Encoding'],
    ];
    for (const name of names) {
      refuses(
        [
          [name, '1'],
          [name.toUpperCase(), '1'],
        ],
        'HEADER_MALFORMED',
      );
    }
    refuses([host], 'HEADER_MALFORMED');
  });

  test('refuses a repeated X-Request-ID as REQUEST_ID_INVALID', () => {
    const id = ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'] as const;
    refuses([id, id], 'REQUEST_ID_INVALID');
  });

  test('accepts repeated fields that are lists or unknown', () => {
    for (const name of ['Accept', 'Accept-Encoding', 'Via', 'X-Unknown', 'Cookie']) {
      accepts([
        [name, '1'],
        [name, '2'],
      ]);
    }
  });

  test('refuses an underscore in a field name, which other programs read as a hyphen', () => {
    refuses([['PSU_ID', '1']], 'HEADER_MALFORMED');
    refuses([['X_Request_ID', '1']], 'HEADER_MALFORMED');
    accepts([['X-Value', 'with_underscore']]);
  });

  test('refuses a Connection field that names a field for the bank', () => {
    accepts([['Connection', 'keep-alive, X-Hop , close']]);
    for (const name of ['x-request-id', 'Digest', 'PSU-IP-Address', 'Authorization', 'Content-Length']) {
      refuses([['Connection', `close, ${name}`]], 'HEADER_MALFORMED');
    }
  });

  test('accepts only the expectation 100-continue, in any case', () => {
    accepts([['Expect', '100-Continue']]);
    for (const expectation of ['', '200-ok', '100-continue, more']) {
      refuses([['Expect', expectation]], 'EXPECTATION_FAILED');
    }
  });

  test('requires a Host in HTTP/1.1, but not in HTTP/1.0', () => {
    assert.throws(() => validateHead([], '1.1'), { code: 'HEADER_MALFORMED' });
    assert.doesNotThrow(() => validateHead([], '1.0'));
  });

  test('quotes no value in its message, which is logged', () => {
    const secret = 'c2VjcmV0';
    for (const name of ['Content-Length', 'Transfer-Encoding', 'Expect']) {
      assert.throws(
        () => validateHead([host, [name, secret]], '1.1'),
        (error: Error) => !error.message.includes(secret),
      );
    }
  });
});
