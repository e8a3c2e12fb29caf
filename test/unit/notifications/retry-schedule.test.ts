import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { retryDelayMs } from '../../../src/notifications/retry-schedule.ts';

describe('the delays before the next attempt', () => {
  test('are 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, and then 6 h each', () => {
    const seconds = [1, 2, 3, 4, 5, 6, 7, 8, 40].map((failed) => retryDelayMs(failed, () => 0.5) / 1_000);
    assert.deepEqual(seconds, [5, 30, 120, 600, 1_800, 7_200, 21_600, 21_600, 21_600]);
  });

  test('differ by up to a tenth in both directions', () => {
    assert.deepEqual(
      [0, 1].map((random) => retryDelayMs(1, () => random)),
      [4_500, 5_500],
    );
    const delays = new Set(Array.from({ length: 20 }, () => retryDelayMs(7)));
    assert.ok(delays.size > 1);
  });
});
