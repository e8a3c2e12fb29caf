import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { HeaderFields } from '../../../../src/pis/headers.ts';
import { retryAfterMs } from '../../../../src/pis/retry-after.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import {
  type AdaptiveRate,
  createAdaptiveRate,
  recoveringRate,
} from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { createFailingState } from '../../../kit/failing-state.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const configured = { perSecond: 50, burst: 50 };
const wait3s: HeaderFields = [['Retry-After', '3']];
const tooManyRequests = { status: 429, headers: wait3s };

const callOf = (payment: string) =>
  ({ lane: 'read', tenant: 'shop', product: 'transfers', payment }) as const;

function startRates(t: TestContext) {
  const time = simulateTime(t);
  const { now } = time;
  const state = createMemoryState(now);
  const createRate = (on = state) => createAdaptiveRate('sandbox', configured, { ...on, now, wall: now });
  return { time, state, createRate, respond: (status: number, headers = wait3s) => ({ status, headers }) };
}

/** The bank refuses calls for that many payments. */
function refuse(rate: AdaptiveRate, payments: number, sentAtMs: number, response = tooManyRequests): void {
  for (let count = 0; count < payments; count++) rate.onResponse(callOf(`${count}`), response, sentAtMs);
}

const pausedMs = (rate: AdaptiveRate) => rate.pauseOf(callOf('another'))?.pausedMs ?? 0;

describe('adaptive rate after 429s', () => {
  test('to one payment alone stays as it is', (t) => {
    const { time, createRate } = startRates(t);
    const rate = createRate();
    for (let count = 0; count < 5; count++) rate.onResponse(callOf('one'), tooManyRequests, time.now());
    assert.deepEqual(
      [pausedMs(rate), rate.pauseOf(callOf('one'))?.pausedMs, rate.rate()],
      [0, 3_000, configured],
    );
  });

  test('to two payments pauses for their Retry-After and continues at a lower rate without bursts', async (t) => {
    const { time, createRate } = startRates(t);
    const rate = createRate();
    refuse(rate, 2, time.now());
    assert.deepEqual([pausedMs(rate), rate.rate()], [3_000, { perSecond: 40, burst: 1 }]);
    await time.pass(3_000);
    assert.equal(pausedMs(rate), 0);
  });

  test('more than ten seconds apart stays as it is', async (t) => {
    const { time, createRate } = startRates(t);
    const rate = createRate();
    rate.onResponse(callOf('one'), tooManyRequests, time.now());
    await time.pass(10_001);
    rate.onResponse(callOf('two'), tooManyRequests, time.now());
    assert.deepEqual([pausedMs(rate), rate.rate()], [0, configured]);
  });

  test('is lowered although other calls succeed, which pause nothing further', (t) => {
    const { time, createRate, respond } = startRates(t);
    const rate = createRate();
    for (let count = 0; count < 4; count++) {
      rate.onResponse(callOf(`${count}`), tooManyRequests, time.now());
      rate.onResponse(callOf('fine'), respond(200), time.now());
    }
    assert.deepEqual([pausedMs(rate), rate.rate().perSecond], [0, 25]);
  });

  test('is halved once by several 429 to calls that were sent before the pause', (t) => {
    const { time, state, createRate } = startRates(t);
    const counting = createFailingState(state);
    const rate = createRate(counting);
    refuse(rate, 45, time.now());
    assert.equal(rate.rate().perSecond, 25);
  });

  test('is halved again by a 429 soon after the pause, and lowered less by one much later', async (t) => {
    const { time, createRate } = startRates(t);
    const rate = createRate();
    refuse(rate, 3, time.now());
    await time.pass(3_000);
    rate.onResponse(callOf('0'), tooManyRequests, time.now());
    assert.equal(rate.rate().perSecond, 12.5);
    await time.pass(28_000);
    const before = rate.rate().perSecond;
    refuse(rate, 2, time.now());
    assert.ok(Math.abs(rate.rate().perSecond - before * 0.8) < 1e-9);
  });

  test('pauses for a second without Retry-After, and for at most two minutes', async (t) => {
    const { time, createRate, respond } = startRates(t);
    const rate = createRate();
    refuse(rate, 2, time.now(), respond(429, []));
    assert.equal(pausedMs(rate), 1_000);
    await time.pass(1_001);
    refuse(rate, 2, time.now(), respond(429, [['Retry-After', '86400']]));
    assert.equal(pausedMs(rate), 120_000);
  });
});

test('a 503 with Retry-After causes a pause at the same rate, and no other response causes one', (t) => {
  const { time, createRate, respond } = startRates(t);
  const rate = createRate();
  for (const [status, headers] of [
    [503, []],
    [500, wait3s],
    [200, wait3s],
  ] as const) {
    refuse(rate, 2, time.now(), respond(status, headers));
    assert.deepEqual(rate.pauses(), []);
  }
  refuse(rate, 2, time.now(), respond(503));
  assert.deepEqual([pausedMs(rate), rate.rate()], [3_000, configured]);
});

describe('adaptive rates of several instances', () => {
  test('pause and slow down together when one receives 429s, except for single payments', async (t) => {
    const { time, createRate } = startRates(t);
    const [one, other] = [createRate(), createRate()];
    let paused = 0;
    other.onPause(() => {
      paused += 1;
    });
    one.onResponse(callOf('one'), tooManyRequests, time.now());
    await time.settle();
    assert.deepEqual(other.pauses(), []);
    one.onResponse(callOf('two'), tooManyRequests, time.now());
    await time.settle();
    assert.deepEqual([pausedMs(other), other.rate(), paused], [3_000, one.rate(), 2]);
    await time.pass(20_000);
    assert.equal(other.rate().perSecond, one.rate().perSecond);
  });

  test('pause together when each receives a 429 to another payment, unless a third call succeeds in between', async (t) => {
    for (const succeeds of [false, true]) {
      const { time, createRate, respond } = startRates(t);
      const [one, other, third] = [createRate(), createRate(), createRate()];
      one.onResponse(callOf('one'), tooManyRequests, time.now());
      await time.settle();
      if (succeeds) third.onResponse(callOf('three'), respond(200), time.now());
      await time.settle();
      other.onResponse(callOf('two'), tooManyRequests, time.now());
      await time.settle();
      for (const rate of [one, other, third]) assert.equal(pausedMs(rate), succeeds ? 0 : 3_000);
      t.mock.timers.reset();
    }
  });

  test('lower the rate once if all receive a 429 at the same time', async (t) => {
    const { time, createRate } = startRates(t);
    const rates = [createRate(), createRate(), createRate()];
    for (const rate of rates) refuse(rate, 2, time.now());
    await time.settle();
    for (const rate of rates) assert.equal(rate.rate().perSecond, 40);
  });

  test('that start later read the pause and the rate from the state', async (t) => {
    const { time, createRate } = startRates(t);
    const first = createRate();
    refuse(first, 2, time.now());
    await time.pass(2_000);
    const late = createRate();
    await late.refresh();
    assert.deepEqual([pausedMs(late), late.rate()], [1_000, first.rate()]);
    await time.pass(10_000);
    const later = createRate();
    await later.refresh();
    assert.deepEqual([pausedMs(later), later.rate()], [0, first.rate()]);
  });

  test('adapt although the state is unavailable, and ignore foreign values in it', async (t) => {
    const { time, state, createRate } = startRates(t);
    const failing = createFailingState(state);
    failing.fail();
    const rate = createRate(failing);
    refuse(rate, 2, time.now());
    await rate.refresh();
    assert.equal(pausedMs(rate), 3_000);
    for (const garbage of [
      '',
      '{',
      '{"from":"1","refused":{"lane":"read","tenant":"shop"},"pauseMs":-5,"isLimit":true}',
      '{"from":"1","refused":{"lane":"other","tenant":"shop"},"pauseMs":5,"isLimit":true}',
      '{"pauses":[{"untilMs":"soon"}]}',
    ]) {
      await state.keyValues.write('limit:sandbox', garbage);
      await state.pubsub.publish('limit:sandbox', garbage);
      const other = createRate();
      await other.refresh();
      await time.settle();
      assert.deepEqual(other.pauses(), []);
    }
  });
});

describe('recovering rate', () => {
  test('starts at half the rate after repeated 429, and at 80 % after a single one', () => {
    assert.equal(recoveringRate({ at: 50, repeated: true }, 0, 50), 25);
    assert.equal(recoveringRate({ at: 50, repeated: false }, 0, 50), 40);
  });

  test('stays below the rate that was too high for half a minute', () => {
    for (const repeated of [true, false]) {
      for (let ms = 0; ms <= 30_000; ms += 100) assert.ok(recoveringRate({ at: 6, repeated }, ms, 50) < 6);
    }
  });

  test('reaches the configured rate within three minutes without another 429', () => {
    for (const at of [5, 0.5, 1e-9]) assert.equal(recoveringRate({ at, repeated: true }, 180_000, 50), 50);
  });

  test('is at least one call in ten seconds, unless the configured rate is lower', () => {
    for (const sinceMs of [-1, 0, 2_000, 10_000]) {
      assert.equal(recoveringRate({ at: 1e-9, repeated: true }, sinceMs, 0.5), 0.1);
      assert.equal(recoveringRate({ at: 1e-9, repeated: true }, sinceMs, 0.01), 0.01);
    }
  });

  test('never falls without another 429, and never exceeds the configured rate', () => {
    const lowered = fc.record({
      at: fc.double({ min: 0.01, max: 200, noNaN: true }),
      repeated: fc.boolean(),
    });
    const ms = fc.double({ min: -10_000, max: 300_000, noNaN: true });
    fc.assert(
      fc.property(lowered, ms, ms, (reduction, first, second) => {
        const [early, late] = [Math.min(first, second), Math.max(first, second)];
        assert.ok(recoveringRate(reduction, early, 50) <= recoveringRate(reduction, late, 50));
        assert.ok(recoveringRate(reduction, late, 50) <= 50);
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
    '1.5': 2_000,
    '0.2': 1_000,
    '2.0': 2_000,
    '0.0': 0,
    'Saturday, 31-Jan-26 12:00:30 GMT': 30_000,
    'Saturday, 31-Jan-75 12:00:00 GMT': Date.UTC(2075, 0, 31, 12) - nowMs,
    'Saturday, 31-Jan-99 12:00:30 GMT': 0,
    'Sat Jan 31 12:00:30 2026': 30_000,
    'Sun Feb  1 12:00:00 2026': 86_400_000,
    '-0.5': undefined,
    '1.': undefined,
    '.5': undefined,
    '1,5': undefined,
    '1.5.2': undefined,
    '+5': undefined,
    '5 s': undefined,
    'Sat, 31 Jan 2026 12:00:30 CET': undefined,
    '2026-01-31T12:00:30Z': undefined,
    '': undefined,
    'Sat, 99 Foo 2026 12:00:30 GMT': undefined,
    '99999999999999999999': 1e23,
    '1e308': undefined,
  };
  for (const [value, ms] of Object.entries(cases)) {
    test(`"${value}" is ${ms === undefined ? 'ignored' : `${ms} ms`}`, () => {
      assert.equal(retryAfterMs([['Retry-After', value]], nowMs), ms);
    });
  }

  test('is undefined if the field is missing', () => assert.equal(retryAfterMs([], nowMs), undefined));
});
