/** A head is taken apart before anything in it is believed. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { validateHead } from '../../../src/http/validate-head.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';

const host = ['Host', 'gateway.example'] as const;

const refuses = (fields: HeaderFields, code: string, version = '1.1') =>
  assert.throws(() => validateHead([host, ...fields], version), { code }, JSON.stringify(fields));
const accepts = (fields: HeaderFields, version = '1.1') =>
  assert.doesNotThrow(() => validateHead([host, ...fields], version), JSON.stringify(fields));

describe('checkFraming', () => {
  test('counts fields, repeated ones included: one hundred pass, one more does not', () => {
    const fields = (count: number) => Array.from({ length: count }, () => ['X-Some', 'value'] as const);
    accepts(fields(99));
    refuses(fields(100), 'HEADERS_TOO_LARGE');
  });

  test('takes a length only if it is plain digits, of a size that no number rounds', () => {
    for (const length of ['0', '1', '999999999999999']) accepts([['Content-Length', length]]);
    for (const length of ['', '00', '01', '+1', '-1', '1.0', '1e3', '0x1', '1,1', '1 1', '9'.repeat(16)]) {
      refuses([['Content-Length', length]], 'HEADER_MALFORMED');
    }
  });

  test('takes a transfer coding only if it is exactly chunked, and of HTTP/1.1', () => {
    accepts([['Transfer-Encoding', 'chunked']]);
    for (const coding of ['Chunked', 'gzip, chunked', 'chunked, chunked', 'identity', '', 'chunked;a=b']) {
      refuses([['Transfer-Encoding', coding]], 'HEADER_MALFORMED');
    }
    refuses([['Transfer-Encoding', 'chunked']], 'HEADER_MALFORMED', '1.0');
  });

  test('refuses fields that stand twice where two readers would take different ones', () => {
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

  test('tells a repeated X-Request-ID as what it is', () => {
    const id = ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'] as const;
    refuses([id, id], 'REQUEST_ID_INVALID');
  });

  test('lets fields stand twice that are lists, or that it does not know', () => {
    for (const name of ['Accept', 'Accept-Encoding', 'Via', 'X-Unknown', 'Cookie']) {
      accepts([
        [name, '1'],
        [name, '2'],
      ]);
    }
  });

  test('refuses an underscore in a name: other programs read it as a hyphen', () => {
    refuses([['PSU_ID', '1']], 'HEADER_MALFORMED');
    refuses([['X_Request_ID', '1']], 'HEADER_MALFORMED');
    accepts([['X-Value', 'with_underscore']]);
  });

  test('lets Connection name whatever need not reach the bank, and nothing else', () => {
    accepts([['Connection', 'keep-alive, X-Hop , close']]);
    for (const name of ['x-request-id', 'Digest', 'PSU-IP-Address', 'Authorization', 'Content-Length']) {
      refuses([['Connection', `close, ${name}`]], 'HEADER_MALFORMED');
    }
  });

  test('knows one expectation, in any case', () => {
    accepts([['Expect', '100-Continue']]);
    for (const expectation of ['', '200-ok', '100-continue, more']) {
      refuses([['Expect', expectation]], 'EXPECTATION_FAILED');
    }
  });

  test('wants a Host of HTTP/1.1, and not of 1.0', () => {
    assert.throws(() => validateHead([], '1.1'), { code: 'HEADER_MALFORMED' });
    assert.doesNotThrow(() => validateHead([], '1.0'));
  });

  test('quotes no value: it may be secret, and the message goes into the log', () => {
    const secret = 'c2VjcmV0';
    for (const name of ['Content-Length', 'Transfer-Encoding', 'Expect']) {
      assert.throws(
        () => validateHead([host, [name, secret]], '1.1'),
        (error: Error) => !error.message.includes(secret),
      );
    }
  });
});
