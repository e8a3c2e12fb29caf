import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createJudge } from '../../../src/http/overload.ts';

const readings = (...delaysMs: readonly number[]) => delaysMs.map((delayMs) => ({ delayMs, heap: 0.5 }));
const fullHeaps = (...parts: readonly number[]) => parts.map((heap) => ({ delayMs: 0, heap }));

describe('what is shed (H4)', () => {
  test('one long task is no overload', () => {
    assert.deepEqual(readings(0, 5_000, 0, 250, 150, 250).map(createJudge()), Array(6).fill('nothing'));
  });

  test('status reads go when the event loop stays late, and come back only when it is well again', () => {
    assert.deepEqual(readings(250, 250, 150, 150, 99, 150, 99, 99).map(createJudge()), [
      'nothing',
      ...Array(6).fill('status-reads'),
      'nothing',
    ]);
  });

  test('everything goes when that is not enough, until all is well', () => {
    assert.deepEqual(readings(250, 250, 1_500, 1_500, 500, 150, 20, 20).map(createJudge()), [
      'nothing',
      'status-reads',
      'status-reads',
      ...Array(4).fill('everything'),
      'nothing',
    ]);
  });

  test('a heap that stays nearly full takes nothing more, so that what has begun can end', () => {
    assert.deepEqual(fullHeaps(0.95, 0.95, 0.85, 0.85, 0.7, 0.7).map(createJudge()), [
      'nothing',
      ...Array(4).fill('everything'),
      'nothing',
    ]);
  });
});
