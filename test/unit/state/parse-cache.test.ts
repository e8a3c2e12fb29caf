import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createParseCache } from '../../../src/state/parse-cache.ts';

/** A cached JSON parser, and the texts that were really parsed. */
function createCountingParser() {
  const parsed: string[] = [];
  const parse = createParseCache((text) => {
    parsed.push(text);
    return JSON.parse(text) as object; // the tests pass objects
  });
  return { parsed, parse };
}

describe('the parse cache', () => {
  test('parses the unchanged text of a key once', () => {
    const { parsed, parse } = createCountingParser();
    assert.equal(parse('key', '{"a":1}'), parse('key', ['{"a"', ':1}'].join('')));
    assert.deepEqual(parsed, ['{"a":1}']);
  });

  test('parses the changed text of a key', () => {
    const { parse } = createCountingParser();
    for (const a of [1, 2, 1]) assert.deepEqual(parse('key', JSON.stringify({ a })), { a });
  });

  test('does not confuse the texts of two keys', () => {
    const { parsed, parse } = createCountingParser();
    for (let round = 0; round < 2; round++)
      for (const key of ['one', 'other']) assert.deepEqual(parse(key, JSON.stringify({ key })), { key });
    assert.equal(parsed.length, 2);
  });

  test('throws for invalid text each time', () => {
    const { parsed, parse } = createCountingParser();
    for (let call = 0; call < 2; call++) assert.throws(() => parse('key', '{'), SyntaxError);
    assert.equal(parsed.length, 2);
  });

  test('evicts the least recently used text when it is full', () => {
    const { parsed, parse } = createCountingParser();
    const large = JSON.stringify({ a: 'x'.repeat(1_000_000) });
    for (const key of ['a', 'b', 'c', 'd', 'e', 'a']) parse(key, large);
    assert.equal(parsed.length, 6);
  });
});
