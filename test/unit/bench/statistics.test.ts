import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { median, percentile, slope, spread } from '../../../bench/measure/statistics.ts';

describe('the statistics of the benchmark', () => {
  test('return the middle value as median, or the mean of the two middle values', () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([9, 1, 5, 6]), 5.5);
    assert.ok(Number.isNaN(median([])));
  });

  test('return a measured value as percentile', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    assert.equal(percentile(hundred, 0.5), 50);
    assert.equal(percentile(hundred, 0.99), 99);
    assert.equal(percentile(hundred, 1), 100);
    assert.equal(percentile([1, 2, 3], 0.5), 2);
    assert.equal(percentile([7], 0.99), 7);
  });

  test('return the spread as a share of the median', () => {
    assert.equal(spread([8, 10, 12]), 0.4);
  });

  test('return the same slope for any offset', () => {
    assert.equal(
      slope([
        [0, 100],
        [1, 102],
        [2, 104],
      ]),
      2,
    );
    assert.equal(
      slope([
        [10, 5],
        [20, 5],
      ]),
      0,
    );
  });
});
