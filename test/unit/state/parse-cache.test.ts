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
  test('parses equal texts once', () => {
    const { parsed, parse } = createCountingParser();
    assert.equal(parse('{"a":1}'), parse(['{"a"', ':1}'].join('')));
    assert.deepEqual(parsed, ['{"a":1}']);
  });

  test('parses a different text', () => {
    const { parse } = createCountingParser();
    assert.deepEqual([parse('{"a":1}'), parse('{"a":2}')], [{ a: 1 }, { a: 2 }]);
  });

  test('throws for invalid text each time', () => {
    const { parsed, parse } = createCountingParser();
    for (let call = 0; call < 2; call++) assert.throws(() => parse('{'), SyntaxError);
    assert.equal(parsed.length, 2);
  });

  test('evicts the least recently used text when it is full', () => {
    const { parsed, parse } = createCountingParser();
    const large = (name: string) => JSON.stringify({ [name]: 'x'.repeat(1_000_000) });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'a']) parse(large(name));
    assert.equal(parsed.length, 6);
  });
});
