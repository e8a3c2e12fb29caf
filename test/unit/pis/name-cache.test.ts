import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cacheByName } from '../../../src/pis/name-cache.ts';

/** A cache of lower-case names, and the names that it computed. */
function createCache() {
  const computed: string[] = [];
  const lowerCase = cacheByName((name) => {
    computed.push(name);
    return name.toLowerCase();
  });
  return { lowerCase, computed };
}

const manyNames = Array.from({ length: 2_500 }, (_, number) => `X-Field-${number}`);

describe('a cache by name', () => {
  test('returns correct values beyond its size', () => {
    const { lowerCase } = createCache();
    for (const name of [...manyNames, ...manyNames]) assert.equal(lowerCase(name), name.toLowerCase());
  });

  test('keeps a name that is used while thousands of others are received', () => {
    const { lowerCase, computed } = createCache();
    for (const name of manyNames) {
      lowerCase('Accept');
      lowerCase(name);
    }
    assert.deepEqual(
      computed.filter((name) => name === 'Accept'),
      ['Accept'],
    );
  });

  test('caches a name although it was full of other names before', () => {
    const { lowerCase, computed } = createCache();
    for (const name of manyNames) lowerCase(name);
    computed.length = 0;
    for (let request = 0; request < 3; request++) lowerCase('Accept');
    assert.deepEqual(computed, ['Accept']);
  });

  test('stores no more than a thousand names, and no long ones', () => {
    const { lowerCase, computed } = createCache();
    for (const name of manyNames) lowerCase(name);
    const long = 'x'.repeat(65);
    lowerCase(long);
    computed.length = 0;
    for (const name of manyNames.toReversed()) lowerCase(name);
    assert.ok(computed.length >= manyNames.length - 1_000);
    lowerCase(long);
    assert.equal(computed.at(-1), long);
  });
});
