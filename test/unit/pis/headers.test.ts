import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  connectionOptions,
  endToEndFields,
  type HeaderFields,
  headerFieldsFrom,
  headerValue,
  headerValues,
  listMembers,
  lowerCase,
  withField,
  withoutFields,
} from '../../../src/pis/headers.ts';

const fields: HeaderFields = [
  ['X-Request-ID', 'one'],
  ['Set-Cookie', 'a=1'],
  ['x-request-id', 'two'],
  ['set-cookie', 'b=2'],
];

describe('header fields', () => {
  test('are found in any case, in order and with repetitions', () => {
    assert.equal(headerValue(fields, 'x-request-id'), 'one');
    assert.deepEqual(headerValues(fields, 'x-request-id'), ['one', 'two']);
    assert.deepEqual(headerValues(fields, 'set-cookie'), ['a=1', 'b=2']);
    assert.equal(headerValue(fields, 'absent'), undefined);
    assert.deepEqual(headerValues(fields, 'absent'), []);
  });

  test('have correct lower-case names beyond the size of the cache', () => {
    const names = Array.from({ length: 2_500 }, (_, number) => `X-Field-${number}`);
    for (const name of [...names, ...names]) assert.equal(lowerCase(name), name.toLowerCase());
  });

  test('can be removed and replaced without a change of the original list', () => {
    const before = structuredClone(fields);

    assert.deepEqual(withoutFields(fields, new Set(['x-request-id'])), [
      ['Set-Cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]);
    assert.deepEqual(headerValues(withField(fields, ['X-REQUEST-ID', 'three']), 'x-request-id'), ['three']);
    assert.equal(withField(fields, ['New', 'field']).length, 5);
    assert.deepEqual(fields, before);
  });

  test("are read from Node's flat list of names and values", () => {
    assert.deepEqual(headerFieldsFrom(['A', '1', 'a', '2']), [
      ['A', '1'],
      ['a', '2'],
    ]);
    assert.deepEqual(headerFieldsFrom([]), []);
  });

  test('that contain lists are split to their members, without empty ones', () => {
    const lists: HeaderFields = [
      ['Content-Encoding', ' GZIP ,, br'],
      ['content-encoding', 'identity,'],
    ];

    assert.deepEqual(listMembers(lists, 'content-encoding'), ['gzip', 'br', 'identity']);
  });
});

describe('endToEndFields', () => {
  test('C2, C8, C11: removes hop-by-hop fields and the fields that Connection names', () => {
    const request: HeaderFields = [
      ['Connection', 'close, X-Internal'],
      ['connection', 'Extra , x-other'],
      ['Keep-Alive', 'timeout=5'],
      ['TE', 'trailers'],
      ['Trailer', 'Digest'],
      ['Transfer-Encoding', 'chunked'],
      ['Upgrade', 'h2c'],
      ['HTTP2-Settings', 'AAMAAABkAAQCAAAAAAIAAAAA'],
      ['Proxy-Authorization', 'Basic eA=='],
      ['Proxy-Authenticate', 'Basic'],
      ['Proxy-Connection', 'keep-alive'],
      ['X-Internal', '1'],
      ['X-OTHER', '2'],
      ['PSU-IP-Address', '192.168.8.16'],
      ['X-Bank-Own', 'stays'],
    ];

    assert.deepEqual(connectionOptions(request), ['close', 'x-internal', 'extra', 'x-other']);
    assert.deepEqual(endToEndFields(request), [
      ['PSU-IP-Address', '192.168.8.16'],
      ['X-Bank-Own', 'stays'],
    ]);
  });

  test('keeps order, case and repetitions of all other fields', () => {
    const name = fc.stringMatching(/^[A-Za-z-]{1,20}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.string())), (list) => {
        const kept = endToEndFields(list);
        assert.deepEqual(
          kept,
          list.filter((field) => kept.includes(field)),
        );
        assert.deepEqual(endToEndFields(kept), kept);
      }),
    );
  });
});
