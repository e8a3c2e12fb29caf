/** Suggestions for misspelt names. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { closestName, nameOfSameWords } from '../../../src/config/did-you-mean.ts';

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

describe('the suggestion for a name with more or fewer words', () => {
  test('is the longest known name of several words that all occur in it', () => {
    for (const name of ['client_max_body_size', 'maxBodyBytes', 'body.max'])
      assert.equal(nameOfSameWords(name, known), 'maxBody', name);
    assert.equal(nameOfSameWords('max_body_of_tenant', ['maxBody', 'maxBodyOfTenant']), 'maxBodyOfTenant');
  });

  test('is otherwise the only known name that contains all of its words', () => {
    assert.equal(nameOfSameWords('version', ['baseUrl', 'standardVersion']), 'standardVersion');
    assert.equal(nameOfSameWords('url', known), 'publicUrl');
    assert.equal(nameOfSameWords('url', [...known, 'errorPageUrl']), undefined);
  });

  test('is missing if only some words occur', () => {
    assert.equal(nameOfSameWords('max_size', known), undefined);
    assert.equal(nameOfSameWords('server_port', known), undefined);
    assert.equal(nameOfSameWords('', known), undefined);
  });
});
