import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { HeaderFields } from '../../../../src/pis/headers.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import {
  createAdaptiveRate,
  recoveringRate,
  retryAfterMs,
} from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { createFailingState } from '../../../kit/failing-state.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const configured = { perSecond: 50, burst: 50 };
const wait3s: HeaderFields = [['Retry-After', '3']];
const tooMany = { status: 429, headers: wait3s };

function startLimits(t: TestContext) {
  const time = simulateTime(t);
  const { now } = time;
  const state = createMemoryState(now);
  const limitOn = (way = state) => createAdaptiveRate('sandbox', configured, { ...way, now, wall: now });
  return { time, state, limitOn, says: (status: number, headers = wait3s) => ({ status, headers }) };
}

describe('a 429', () => {
  test('pauses for as long as it says, and lowers the rate; turns come one by one from then on', async (t) => {
    const { time, limitOn } = startLimits(t);
    const limit = limitOn();
    limit.onResponse(tooMany, time.now());
    assert.deepEqual([limit.pausedMs(), limit.rate()], [3_000, { perSecond: 40, burst: 1 }]);
    await time.pass(3_000);
    assert.equal(limit.pausedMs(), 0);
  });

  test('that is not alone halves the rate, but once: the others were on their way', (t) => {
    const { time, state, limitOn } = startLimits(t);
    const counted = createFailingState(state);
    const limit = limitOn(counted);
    for (let one = 0; one < 45; one++) limit.onResponse(tooMany, time.now());
    assert.equal(limit.rate().perSecond, 25);
    assert.equal(counted.operations.filter((one) => one.startsWith('publish')).length, 2); // once, and that it was repeated
  });

  test('soon after the pause halves the rate again, one much later lowers it a little', async (t) => {
    const { time, limitOn } = startLimits(t);
    const limit = limitOn();
    for (let one = 0; one < 2; one++) limit.onResponse(tooMany, time.now());
    await time.pass(3_000);
    limit.onResponse(tooMany, time.now());
    assert.equal(limit.rate().perSecond, 12.5);
    await time.pass(28_000);
    const before = limit.rate().perSecond;
    limit.onResponse(tooMany, time.now());
    assert.ok(Math.abs(limit.rate().perSecond - before * 0.8) < 1e-9);
  });

  test('that names no time pauses for a second, and one that names a day for two minutes', async (t) => {
    const { time, limitOn, says } = startLimits(t);
    const limit = limitOn();
    limit.onResponse(says(429, []), time.now());
    assert.equal(limit.pausedMs(), 1_000);
    await time.pass(1_001);
    limit.onResponse(says(429, [['Retry-After', '86400']]), time.now());
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
    limit.onResponse(says(status, headers), time.now());
    assert.equal(limit.pausedMs(), 0);
  }
  limit.onResponse(says(503), time.now());
  assert.deepEqual([limit.pausedMs(), limit.rate()], [3_000, configured]);
});

describe('all instances', () => {
  test('pause and slow down when one is told to', async (t) => {
    const { time, limitOn } = startLimits(t);
    const [one, other] = [limitOn(), limitOn()];
    let paused = 0;
    other.onPause(() => {
      paused += 1;
    });
    one.onResponse(tooMany, time.now());
    await time.settle();
    assert.deepEqual([other.pausedMs(), other.rate(), paused], [3_000, one.rate(), 1]);
    await time.pass(20_000);
    assert.equal(other.rate().perSecond, one.rate().perSecond);
  });

  test('that are told the same thing at the same time lower the rate once', async (t) => {
    const { time, limitOn } = startLimits(t);
    const limits = [limitOn(), limitOn(), limitOn()];
    for (const limit of limits) limit.onResponse(tooMany, time.now());
    await time.settle();
    for (const limit of limits) assert.equal(limit.rate().perSecond, 40);
  });

  test('that come later learn it from the state', async (t) => {
    const { time, limitOn } = startLimits(t);
    const first = limitOn();
    first.onResponse(tooMany, time.now());
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
    limit.onResponse(tooMany, time.now());
    await limit.refresh();
    assert.equal(limit.pausedMs(), 3_000);
    for (const garbage of ['', '{', '{"id":"1","pauseMs":-5,"untilMs":9e15,"lowered":null}']) {
      await state.keyValues.write('limit:sandbox', garbage);
      await state.pubsub.publish('limit:sandbox', garbage);
      const other = limitOn();
      await other.refresh();
      await time.settle();
      assert.equal(other.pausedMs(), 0);
    }
  });
});

describe('the rate after a 429', () => {
  test('is halved if it was repeated, and a little lower if not', () => {
    assert.equal(recoveringRate({ at: 50, repeated: true }, 0, 50), 25);
    assert.equal(recoveringRate({ at: 50, repeated: false }, 0, 50), 40);
  });

  test('stays below the rate that was too high for half a minute', () => {
    for (const repeated of [true, false]) {
      for (let ms = 0; ms <= 30_000; ms += 100) assert.ok(recoveringRate({ at: 6, repeated }, ms, 50) < 6);
    }
  });

  test('is the configured one again within three minutes, if the bank says nothing more', () => {
    for (const at of [5, 0.5, 1e-9]) assert.equal(recoveringRate({ at, repeated: true }, 180_000, 50), 50);
  });

  test('is one call in ten seconds at least, unless less is configured', () => {
    for (const sinceMs of [-1, 0, 2_000, 10_000]) {
      assert.equal(recoveringRate({ at: 1e-9, repeated: true }, sinceMs, 0.5), 0.1);
      assert.equal(recoveringRate({ at: 1e-9, repeated: true }, sinceMs, 0.01), 0.01);
    }
  });

  test('never falls while the bank is quiet, and never exceeds the configured one', () => {
    const lowered = fc.record({
      at: fc.double({ min: 0.01, max: 200, noNaN: true }),
      repeated: fc.boolean(),
    });
    const ms = fc.double({ min: -10_000, max: 300_000, noNaN: true });
    fc.assert(
      fc.property(lowered, ms, ms, (one, first, second) => {
        const [early, late] = [Math.min(first, second), Math.max(first, second)];
        assert.ok(recoveringRate(one, early, 50) <= recoveringRate(one, late, 50));
        assert.ok(recoveringRate(one, late, 50) <= 50);
      }),
    );
  });
});

describe('Retry-After', () => {
  const nowMs = Date.UTC(2026, 0, 31, 12, 0, 0);
  const cases: Readonly<Record<string, number | undefined>> = {
    '3': 3_000,
    '0': 0,
    ' 120 ': 120_000,
    'Sat, 31 Jan 2026 12:00:30 GMT': 30_000,
    'Sat, 31 Jan 2026 11:00:00 GMT': 0,
    soon: undefined,
    '-1': undefined,
    '1.5': undefined,
    '': undefined,
    'Sat, 99 Foo 2026 12:00:30 GMT': undefined,
    '99999999999999999999': 1e23,
    '1e308': undefined,
  };
  for (const [value, ms] of Object.entries(cases)) {
    test(`"${value}" is ${ms === undefined ? 'nothing' : `${ms} ms`}`, () => {
      assert.equal(retryAfterMs([['Retry-After', value]], nowMs), ms);
    });
  }

  test('is not there', () => assert.equal(retryAfterMs([], nowMs), undefined));
});
