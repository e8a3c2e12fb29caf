import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pollIntervalMs, retryIntervalMs } from '../../../src/notifications/poll-schedule.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const settings = { pendingTtl: second, settledTtl: minute, maxInterval: hour };

describe('the interval between two polls', () => {
  test('begins at the shortest, grows with the time without a change, and ends at the longest', () => {
    const intervals = [0, 10 * second, minute, 10 * minute, 5 * hour, 20 * hour].map((unchangedForMs) =>
      pollIntervalMs(settings, 'pending', unchangedForMs),
    );
    assert.deepEqual(intervals, [second, second, 6 * second, minute, 30 * minute, hour]);
  });

  test('is longer for a settled status, and a final one is not polled', () => {
    assert.equal(pollIntervalMs(settings, 'settled', 0), minute);
    assert.equal(pollIntervalMs(settings, 'settled', 20 * hour), hour);
    assert.equal(pollIntervalMs(settings, 'final', 0), undefined);
  });

  test('has one poll half an hour after the last change or write: banks end an authorisation then', () => {
    assert.equal(pollIntervalMs(settings, 'pending', 28 * minute), 2 * minute);
    assert.equal(pollIntervalMs(settings, 'pending', 30 * minute), 3 * minute);
  });

  test('is never shorter than the cache keeps a status', () => {
    const longTtl = { ...settings, pendingTtl: 10 * minute, maxInterval: minute };
    assert.equal(pollIntervalMs(longTtl, 'pending', hour), 10 * minute);
  });

  test('doubles after each failure', () => {
    const retries = [1, 2, 5, 20].map((failures) => retryIntervalMs(hour, failures));
    assert.deepEqual(retries, [2 * second, 4 * second, 32 * second, hour]);
  });
});
