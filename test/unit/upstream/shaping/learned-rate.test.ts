import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { learnedRate } from '../../../../src/upstream/shaping/learned-rate.ts';
import { retryAfterMs } from '../../../../src/upstream/shaping/retry-after.ts';

describe('the rate after a 429', () => {
  test('is halved if it was repeated, and a little lower if not', () => {
    assert.equal(learnedRate({ at: 50, repeated: true }, 0, 50), 25);
    assert.equal(learnedRate({ at: 50, repeated: false }, 0, 50), 40);
  });

  test('stays below the rate that was too high for half a minute', () => {
    for (const repeated of [true, false]) {
      for (let ms = 0; ms <= 30_000; ms += 100) assert.ok(learnedRate({ at: 6, repeated }, ms, 50) < 6);
    }
  });

  test('is the configured one again within three minutes, if the bank says nothing more', () => {
    for (const at of [5, 0.5, 1e-9]) assert.equal(learnedRate({ at, repeated: true }, 180_000, 50), 50);
  });

  test('is one call in ten seconds at least, unless less is configured', () => {
    for (const sinceMs of [-1, 0, 2_000, 10_000]) {
      assert.equal(learnedRate({ at: 1e-9, repeated: true }, sinceMs, 0.5), 0.1);
      assert.equal(learnedRate({ at: 1e-9, repeated: true }, sinceMs, 0.01), 0.01);
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
        assert.ok(learnedRate(one, early, 50) <= learnedRate(one, late, 50));
        assert.ok(learnedRate(one, late, 50) <= 50);
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
