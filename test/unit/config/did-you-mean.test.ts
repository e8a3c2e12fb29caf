import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { closestName } from '../../../src/config/did-you-mean.ts';

const known = ['host', 'port', 'publicUrl', 'maxBody', 'reusePort'];

describe('the name that was probably meant', () => {
  test('is found behind swapped, missing, doubled and wrong letters, and wrong capitals', () => {
    const meant = ['prot', 'hst', 'porrt', 'pubicUrl', 'maxbody', 'reuse-port'].map((name) =>
      closestName(name, known),
    );
    assert.deepEqual(meant, ['port', 'host', 'port', 'publicUrl', 'maxBody', 'reusePort']);
  });

  test('is not guessed where nothing is near', () => {
    assert.equal(closestName('timeout', known), undefined);
    assert.equal(closestName('', known), undefined);
    assert.equal(closestName('x'.repeat(1_000_000), known), undefined);
  });
});
