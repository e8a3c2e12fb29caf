import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  isInstantProduct,
  type PolledStatus,
  pollIntervalMs,
  retryIntervalMs,
} from '../../../src/notifications/poll-schedule.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const pending: PolledStatus = {
  finality: 'pending',
  unchangedForMs: 0,
  isInstant: false,
  authorisingForMs: undefined,
};
const settled: PolledStatus = { ...pending, finality: 'settled' };
const settings = { pendingTtl: second, settledTtl: minute, maxInterval: hour };

describe('the interval between two polls', () => {
  test('begins at the shortest, grows with the time without a change, and ends at the longest', () => {
    const intervals = [0, 10 * second, minute, 10 * minute, 5 * hour, 20 * hour].map((unchangedForMs) =>
      pollIntervalMs(settings, { ...pending, unchangedForMs }),
    );
    assert.deepEqual(intervals, [second, second, 6 * second, minute, 30 * minute, hour]);
  });

  test('is longer for a settled status, and a final one is not polled', () => {
    assert.equal(pollIntervalMs(settings, settled), minute);
    assert.equal(pollIntervalMs(settings, { ...settled, unchangedForMs: 20 * hour }), hour);
    assert.equal(pollIntervalMs(settings, { ...pending, finality: 'final' }), undefined);
  });

  test('ends half an hour after the start of an authorisation: banks end it then', () => {
    const unchanged = { ...pending, unchangedForMs: 20 * hour };
    const interval = (authorisingForMs: number | undefined) =>
      pollIntervalMs(settings, { ...unchanged, authorisingForMs });
    assert.equal(interval(0), 30 * minute);
    assert.equal(interval(28 * minute), 2 * minute);
    assert.equal(interval(30 * minute), hour);
    assert.equal(interval(undefined), hour);
  });

  test('is never shorter than the cache keeps a status, except for instant payments, which begin with a second', () => {
    const longTtl = { ...settings, pendingTtl: 10 * minute, maxInterval: minute };
    assert.equal(pollIntervalMs(longTtl, { ...pending, unchangedForMs: hour }), 10 * minute);
    const instant = { ...pending, isInstant: true };
    const intervals = [0, 10 * second, 5 * minute].map((unchangedForMs) =>
      pollIntervalMs(longTtl, { ...instant, unchangedForMs }),
    );
    assert.deepEqual(intervals, [second, second, 30 * second]);
  });

  test('is that of an instant payment by the name of the product', () => {
    const products = ['instant-sepa-credit-transfers', 'pain.001-instant-sepa-credit-transfers'];
    assert.ok(products.every(isInstantProduct));
    assert.ok(!['sepa-credit-transfers', 'noninstant-transfers'].some(isInstantProduct));
  });

  test('doubles after each failure', () => {
    const retries = [1, 2, 5, 20].map((failures) => retryIntervalMs(hour, failures));
    assert.deepEqual(retries, [2 * second, 4 * second, 32 * second, hour]);
  });
});
