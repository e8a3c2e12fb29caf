import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hintedMs } from '../../../src/upstream/keep-alive-hint.ts';

test('a connection may be used for a second less than the bank keeps it', () => {
  assert.equal(hintedMs(['Keep-Alive', 'timeout=5']), 4_000);
  assert.equal(hintedMs(['Date', 'now', 'keep-alive', 'timeout=75, max=100']), 74_000);
});

test('a bank that keeps it for a second or less does not get another request on it', () => {
  assert.equal(hintedMs(['Keep-Alive', 'timeout=1']), 0);
  assert.equal(hintedMs(['Keep-Alive', 'timeout=0']), 0);
});

test('an answer that does not say how long sets no limit', () => {
  for (const rawHeaders of [
    [],
    ['timeout=5', 'timeout=5'],
    ['Keep-Alive', 'max=100'],
    ['Keep-Alive', 'timeout=soon'],
    ['X-Name', 'Keep-Alive', 'timeout=5', ''],
  ])
    assert.equal(hintedMs(rawHeaders), Number.POSITIVE_INFINITY, rawHeaders.join());
});
