import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createHysteresis } from '../../../src/http/load-shedding.ts';

const decisionsOn = (delaysMs: readonly number[]) => {
  const { delayed } = createHysteresis();
  return delaysMs.map(delayed);
};

describe('load shedding (H4)', () => {
  test('does not begin because of one long task', () => {
    assert.deepEqual(decisionsOn([0, 5_000, 0, 250, 150, 250]), Array(6).fill('nothing'));
  });

  test('refuses status reads while the event loop is late, until it was on time twice', () => {
    assert.deepEqual(decisionsOn([250, 250, 150, 150, 99, 150, 99, 99]), [
      'nothing',
      ...Array(6).fill('status-reads'),
      'nothing',
    ]);
  });

  test('refuses every request while the event loop is very late, until it was on time twice', () => {
    assert.deepEqual(decisionsOn([250, 250, 1_500, 1_500, 500, 150, 20, 20]), [
      'nothing',
      'status-reads',
      'status-reads',
      ...Array(4).fill('everything'),
      'nothing',
    ]);
  });

  test('refuses every request after one collection that leaves the heap nearly full, until one leaves room', () => {
    const { delayed, collected } = createHysteresis();
    assert.deepEqual([collected(0.7), delayed(0)], ['nothing', 'nothing']);
    assert.deepEqual([collected(0.79), delayed(0), delayed(0)], Array(3).fill('everything'));
    assert.deepEqual([collected(0.75), delayed(0), delayed(0)], Array(3).fill('everything'));
    assert.deepEqual([collected(0.6), delayed(0)], ['everything', 'nothing']);
  });

  test('admits requests again if no collection follows for 20 readings, and sheds if the next one is full', () => {
    const { delayed, collected } = createHysteresis();
    collected(0.79);
    const decisions = Array.from({ length: 21 }, () => delayed(0));
    assert.deepEqual(decisions, [...Array(20).fill('everything'), 'nothing']);
    assert.deepEqual([collected(0.79), delayed(0)], ['everything', 'everything']);
  });
});
