/** Suggestions for misspelt names. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { closestName } from '../../../src/config/did-you-mean.ts';

const known = ['host', 'port', 'publicUrl', 'maxBody', 'reusePort'];

describe('the suggestion for a misspelt name', () => {
  test('corrects swapped, missing, doubled and wrong letters, and wrong capitals', () => {
    const suggestions = ['prot', 'hst', 'porrt', 'pubicUrl', 'maxbody', 'reuse-port'].map((name) =>
      closestName(name, known),
    );
    assert.deepEqual(suggestions, ['port', 'host', 'port', 'publicUrl', 'maxBody', 'reusePort']);
  });

  test('completes the beginning of a single known name', () => {
    assert.equal(closestName('publ', known), 'publicUrl');
    assert.equal(closestName('maxB', ['maxBody', 'maxBytes']), undefined);
    assert.equal(closestName('max', known), undefined, 'too short');
  });

  test('suggests nothing if no known name is similar', () => {
    assert.equal(closestName('timeout', known), undefined);
    assert.equal(closestName('', known), undefined);
    assert.equal(closestName('x'.repeat(1_000_000), known), undefined);
  });
});
