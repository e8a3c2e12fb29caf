import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RequestHead } from '../../../src/http/request-head.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { namesKeptFromBank } from '../../kit/fields.ts';

const host = ['Host', 'gateway.example'] as const;

const headOf = (fields: HeaderFields, version = '1.1') => new RequestHead(fields.flat(), version);
const refuses = (fields: HeaderFields, code: string, version = '1.1') =>
  assert.equal(headOf([host, ...fields], version).error?.code, code, JSON.stringify(fields));
const accepts = (fields: HeaderFields, version = '1.1') =>
  assert.equal(headOf([host, ...fields], version).error, undefined, JSON.stringify(fields));

describe('the head of a request', () => {
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

  test('offers the bank only content codings that the gateway can decode, with their weights', () => {
    for (const [sent, offered] of [
      ['gzip, deflate, br, zstd', 'gzip, deflate, br, zstd'],
      ['gzip;q=1.0, compress;q=0.9, *;q=0', 'gzip;q=1.0'],
      ['X-GZIP;q=0.5 , dcb,identity; q=0', 'X-GZIP;q=0.5, identity; q=0'],
      ['compress', 'identity'],
      ['*', 'identity'],
      ['', 'identity'],
      ['gzipped, zstd-2', 'identity'],
    ] as const)
      assert.deepEqual(headOf([host, ['accept-encoding', sent]]).outbound, [['accept-encoding', offered]]);
    assert.deepEqual(headOf([host]).outbound, []);
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
    assert.equal(headOf([]).error?.field, 'host');
    assert.equal(headOf([], '1.0').error, undefined);
  });

  test('quotes no value in its message, which is logged', () => {
    const secret = 'c2VjcmV0';
    for (const name of ['Content-Length', 'Transfer-Encoding', 'Expect']) {
      const { error } = headOf([host, [name, secret]]);
      assert.ok(error && !error.message.includes(secret));
    }
  });

  test('is refused for the first of several reasons, in a fixed order', () => {
    const reasons: readonly [code: string, field: string | undefined, ...fields: HeaderFields][] = [
      ['HEADER_MALFORMED', undefined, ['PSU_ID', '1']],
      ['HEADER_MALFORMED', 'connection', ['Connection', 'digest']],
      ['HEADER_MALFORMED', 'transfer-encoding', ['Transfer-Encoding', 'gzip']],
      ['HEADER_MALFORMED', 'content-length', ['Content-Length', '01']],
      ['EXPECTATION_FAILED', 'Expect', ['Expect', '200-ok']],
    ];
    reasons.forEach(([code, field], index) => {
      const fields = reasons.slice(index).flatMap(([, , ...own]) => own);
      for (const order of [fields, fields.toReversed()]) {
        const { error } = headOf([host, ...order]);
        assert.deepEqual([error?.code, error?.field], [code, field]);
      }
    });
    const tooMany = Array.from({ length: 101 }, () => ['X_Some', 'value'] as const);
    assert.equal(headOf(tooMany, '0.9').error?.code, 'HEADERS_TOO_LARGE');
    assert.match(headOf([['X_Some', '1']], '0.9').error?.message ?? '', /protocol version/);
    assert.match(headOf([['X_Some', '1']]).error?.message ?? '', /underscore/);
  });

  test('still names the format and the X-Request-ID of the refusal if it is refused', () => {
    const head = headOf([
      ['Content-Length', '01'],
      ['Accept', 'application/problem+json'],
      ['X-Request-ID', uuid],
    ]);
    assert.ok(head.error);
    assert.deepEqual([head.accept, head.requestId], ['application/problem+json', uuid]);
  });
});

const uuid = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
const requestIdIn = (...values: readonly string[]) =>
  headOf(values.map((value) => ['x-Request-Id', value] as const)).requestId;

describe('the X-Request-ID of a head', () => {
  test('may be a UUID of any version, in upper or lower case, and is unchanged', () => {
    const spelled = fc.uuid().chain((id) => fc.constantFrom(id, id.toUpperCase()));
    fc.assert(fc.property(spelled, (id) => assert.equal(requestIdIn(id), id)));
    for (const id of ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']) {
      assert.equal(requestIdIn(id), id);
    }
  });

  test('is undefined if it is missing, repeated or not a UUID', () => {
    const wrong = [
      [],
      [''],
      [uuid, uuid],
      [uuid, uuid, uuid],
      [`${uuid} `],
      [` ${uuid}`],
      [`{${uuid}}`],
      [`urn:uuid:${uuid}`],
      [uuid.replaceAll('-', '')],
      [`${uuid},${uuid}`],
      [uuid.replace('9', 'g')],
      [`${uuid}\n`],
      ['９'.repeat(8) + uuid.slice(8)],
    ];
    for (const values of wrong) assert.equal(requestIdIn(...values), undefined, JSON.stringify(values));
  });
});

describe('the fields for the bank', () => {
  const outboundNames = (fields: HeaderFields) => headOf(fields).outbound.map(([name]) => name);

  test('keep names, values, order and repetitions of end-to-end fields', () => {
    const fields = [
      ['psu-IP-address', '192.168.8.78'],
      ['Via', 'a'],
      ['AUTHORIZATION', 'Bearer x'],
      ['via', 'b'],
    ] as const;
    assert.deepEqual(headOf([host, ...fields]).outbound, fields);
  });

  test('do not contain fields that Connection names, in any case', () => {
    const named = ['X-Hop', 'Close', 'X-Other', 'Keep'].map((name) => [name, 'x'] as const);
    assert.deepEqual(outboundNames([['Connection', 'close, x-hop'], ...named, ['connection', ' X-OTHER ']]), [
      'Keep',
    ]);
  });

  test('contain neither fields of the connection, nor fields for the gateway, nor the identity that a proxy passes on', () => {
    for (const name of namesKeptFromBank) assert.deepEqual(outboundNames([[name, 'x']]), [], name);
  });
});
