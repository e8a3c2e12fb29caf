import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  connectionOptions,
  type HeaderFields,
  headerFieldsFrom,
  headerValue,
  headerValues,
  listMembers,
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

  test('are named by Connection, in any case; keep-alive alone names none', () => {
    for (const value of ['keep-alive', 'Keep-Alive', '', ' , '])
      assert.deepEqual(connectionOptions(value), [], value);
    assert.deepEqual(connectionOptions(' X-Hop, close,keep-alive'), ['x-hop', 'close', 'keep-alive']);
  });
});
