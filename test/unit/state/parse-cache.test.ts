import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createParseCache } from '../../../src/state/parse-cache.ts';

/** Counts how often it really parses. */
function counting() {
  const parsed: string[] = [];
  const said = createParseCache((text) => {
    parsed.push(text);
    return JSON.parse(text) as object; // the tests give it objects
  });
  return { parsed, said };
}

describe('a text that is read again', () => {
  test('is parsed once', () => {
    const { parsed, said } = counting();
    assert.equal(said('{"a":1}'), said(['{"a"', ':1}'].join('')));
    assert.deepEqual(parsed, ['{"a":1}']);
  });

  test('is parsed anew as soon as it differs', () => {
    const { said } = counting();
    assert.deepEqual([said('{"a":1}'), said('{"a":2}')], [{ a: 1 }, { a: 2 }]);
  });

  test('fails each time, if it cannot be parsed', () => {
    const { parsed, said } = counting();
    for (let turn = 0; turn < 2; turn++) assert.throws(() => said('{'), SyntaxError);
    assert.equal(parsed.length, 2);
  });

  test('is forgotten when others have taken its room', () => {
    const { parsed, said } = counting();
    const large = (name: string) => JSON.stringify({ [name]: 'x'.repeat(1_000_000) });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'a']) said(large(name));
    assert.equal(parsed.length, 6);
  });
});
