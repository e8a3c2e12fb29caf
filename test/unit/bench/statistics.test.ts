import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { median, percentile, slope, spread } from '../../../bench/measure/statistics.ts';

describe('what is made of several numbers', () => {
  test('the median is the middle one, or lies between the two in the middle', () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([9, 1, 5, 6]), 5.5);
    assert.ok(Number.isNaN(median([])));
  });

  test('a percentile is a value that was measured', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    assert.equal(percentile(hundred, 0.5), 50);
    assert.equal(percentile(hundred, 0.99), 99);
    assert.equal(percentile(hundred, 1), 100);
    assert.equal(percentile([1, 2, 3], 0.5), 2);
    assert.equal(percentile([7], 0.99), 7);
  });

  test('the spread is a part of the median', () => {
    assert.equal(spread([8, 10, 12]), 0.4);
  });

  test('the slope says by how much something grows, whatever it begins with', () => {
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
