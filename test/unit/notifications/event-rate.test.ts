import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEventRate } from '../../../src/notifications/event-rate.ts';

describe('the rate of events', () => {
  test('is that of the last seconds that have ended', () => {
    let nowMs = 1_000_000;
    const rate = createEventRate(5, () => nowMs);
    assert.equal(rate.perSecond(), 0);
    for (let event = 0; event < 10; event += 1) rate.count();
    assert.equal(rate.perSecond(), 0, 'the second has not ended');
    nowMs += 1_000;
    rate.count();
    assert.equal(rate.perSecond(), 2);
    nowMs += 4_000;
    assert.equal(rate.perSecond(), 2.2);
    nowMs += 1_000;
    assert.equal(rate.perSecond(), 0.2);
    nowMs += 60_000;
    assert.equal(rate.perSecond(), 0);
  });

  test('does not count twice if the clock is set back', () => {
    let nowMs = 1_000_000;
    const rate = createEventRate(5, () => nowMs);
    rate.count();
    nowMs -= 3_000;
    assert.equal(rate.perSecond(), 0);
  });
});
