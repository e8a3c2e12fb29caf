import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { HeaderFields } from '../../../../src/pis/headers.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import { createBankLimit } from '../../../../src/upstream/shaping/bank-limit.ts';
import { createFailingState } from '../../../kit/failing-state.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const configured = { perSecond: 50, burst: 50 };
const wait3s: HeaderFields = [['Retry-After', '3']];
const tooMany = { status: 429, headers: wait3s };

function startLimits(t: TestContext) {
  const time = simulateTime(t);
  const { now } = time;
  const state = createMemoryState(now);
  const limitOn = (way = state) => createBankLimit('sandbox', configured, { ...way, now, wall: now });
  return { time, state, limitOn, says: (status: number, headers = wait3s) => ({ status, headers }) };
}

describe('a 429', () => {
  test('pauses for as long as it says, and lowers the rate; turns come one by one from then on', async (t) => {
    const { time, limitOn } = startLimits(t);
    const limit = limitOn();
    limit.heard(tooMany, time.now());
    assert.deepEqual([limit.pausedMs(), limit.rate()], [3_000, { perSecond: 40, burst: 1 }]);
    await time.pass(3_000);
    assert.equal(limit.pausedMs(), 0);
  });

  test('that is not alone halves the rate, but once: the others were on their way', (t) => {
    const { time, state, limitOn } = startLimits(t);
    const counted = createFailingState(state);
    const limit = limitOn(counted);
    for (let one = 0; one < 45; one++) limit.heard(tooMany, time.now());
    assert.equal(limit.rate().perSecond, 25);
    assert.equal(counted.asked.filter((one) => one.startsWith('publish')).length, 2); // once, and that it was repeated
  });

  test('soon after the pause halves the rate again, one much later lowers it a little', async (t) => {
    const { time, limitOn } = startLimits(t);
    const limit = limitOn();
    for (let one = 0; one < 2; one++) limit.heard(tooMany, time.now());
    await time.pass(3_000);
    limit.heard(tooMany, time.now());
    assert.equal(limit.rate().perSecond, 12.5);
    await time.pass(28_000);
    const before = limit.rate().perSecond;
    limit.heard(tooMany, time.now());
    assert.ok(Math.abs(limit.rate().perSecond - before * 0.8) < 1e-9);
  });

  test('that names no time pauses for a second, and one that names a day for two minutes', async (t) => {
    const { time, limitOn, says } = startLimits(t);
    const limit = limitOn();
    limit.heard(says(429, []), time.now());
    assert.equal(limit.pausedMs(), 1_000);
    await time.pass(1_001);
    limit.heard(says(429, [['Retry-After', '86400']]), time.now());
    assert.equal(limit.pausedMs(), 120_000);
  });
});

test('a 503 with Retry-After pauses and lowers nothing; without it, and any other answer, does nothing', (t) => {
  const { time, limitOn, says } = startLimits(t);
  const limit = limitOn();
  for (const [status, headers] of [
    [503, []],
    [500, wait3s],
    [200, wait3s],
  ] as const) {
    limit.heard(says(status, headers), time.now());
    assert.equal(limit.pausedMs(), 0);
  }
  limit.heard(says(503), time.now());
  assert.deepEqual([limit.pausedMs(), limit.rate()], [3_000, configured]);
});

describe('all instances', () => {
  test('pause and slow down when one is told to', async (t) => {
    const { time, limitOn } = startLimits(t);
    const [one, other] = [limitOn(), limitOn()];
    let paused = 0;
    other.whenPaused(() => {
      paused += 1;
    });
    one.heard(tooMany, time.now());
    await time.settle();
    assert.deepEqual([other.pausedMs(), other.rate(), paused], [3_000, one.rate(), 1]);
    await time.pass(20_000);
    assert.equal(other.rate().perSecond, one.rate().perSecond);
  });

  test('that are told the same thing at the same time lower the rate once', async (t) => {
    const { time, limitOn } = startLimits(t);
    const limits = [limitOn(), limitOn(), limitOn()];
    for (const limit of limits) limit.heard(tooMany, time.now());
    await time.settle();
    for (const limit of limits) assert.equal(limit.rate().perSecond, 40);
  });

  test('that come later learn it from the state', async (t) => {
    const { time, limitOn } = startLimits(t);
    const first = limitOn();
    first.heard(tooMany, time.now());
    await time.pass(2_000);
    const late = limitOn();
    await late.refresh();
    assert.deepEqual([late.pausedMs(), late.rate()], [1_000, first.rate()]);
    await time.pass(10_000);
    const later = limitOn();
    await later.refresh();
    assert.deepEqual([later.pausedMs(), later.rate()], [0, first.rate()]);
  });

  test('do as they are told although the state is out of reach, or holds garbage', async (t) => {
    const { time, state, limitOn } = startLimits(t);
    const failing = createFailingState(state);
    failing.fail();
    const limit = limitOn(failing);
    limit.heard(tooMany, time.now());
    await limit.refresh();
    assert.equal(limit.pausedMs(), 3_000);
    for (const garbage of ['', '{', '{"id":"1","pauseMs":-5,"untilMs":9e15,"lowered":null}']) {
      await state.keyValues.write('limit:sandbox', garbage);
      await state.announcements.publish('limit:sandbox', garbage);
      const other = limitOn();
      await other.refresh();
      await time.settle();
      assert.equal(other.pausedMs(), 0);
    }
  });
});
