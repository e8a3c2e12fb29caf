/** Settings with a unit. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  duration,
  durations,
  formatDuration,
  formatQuantity,
  parseQuantity,
  percent,
  percentages,
  rate,
  rates,
  size,
  sizes,
  type Unit,
  unitsByName,
} from '../../../src/config/units.ts';

const messageOf = (result: { error?: { issues: readonly { message: string }[] } | undefined }) =>
  result.error?.issues[0]?.message;

describe('durations', () => {
  test('parses durations of every unit to milliseconds', () => {
    const written = ['500ms', '10s', '2min', '24h', '400d', '10 s'];
    const expected = [500, 10_000, 120_000, 86_400_000, 34_560_000_000, 10_000];
    assert.deepEqual(
      written.map((text) => parseQuantity(durations, text)),
      expected,
    );
  });

  test('refuses a duration without a known unit, and gives examples', () => {
    for (const text of ['', 's', '-1s', '1e3s', '1h30min', ' 1s', '٣s', '1.5ms', '5 fortnights'])
      assert.equal(
        messageOf(duration('1s').safeParse(text)),
        'expected a duration such as 500ms, 10s, 2min, 24h or 400d',
      );
  });

  test('suggests a duration for another unit, for capitals, and for a fraction', () => {
    for (const [text, similar] of [
      ['35 sec', '35s'],
      ['10S', '10s'],
      ['1.5s', '1500ms'],
      ['5m', '5min'],
      ['2 hours', '2h'],
      ['0.5d', '12h'],
      ['100msec', '100ms'],
    ])
      assert.equal(
        messageOf(duration('1s').safeParse(text)),
        `expected a duration such as 500ms, 10s, 2min, 24h or 400d (did you mean ${similar}?)`,
      );
  });

  test('refuses a plain number as a duration, and asks for its unit', () => {
    for (const value of [10, '10'])
      assert.equal(
        messageOf(duration('1s').safeParse(value)),
        'expected a duration such as 500ms, 10s, 2min, 24h or 400d; add the unit to the number',
      );
  });

  test('refuses a duration of zero unless the setting allows it', () => {
    assert.equal(messageOf(duration('1s').safeParse('0s')), 'expected at least 1ms');
    assert.equal(duration('1s', { min: '0ms' }).parse('0s'), 0);
  });

  test('accepts a duration on the bounds of its setting, and refuses it beyond', () => {
    const bounded = duration('1min', { min: '1s', max: '2min' });
    assert.deepEqual([bounded.parse('1s'), bounded.parse('120s')], [1000, 120_000]);
    assert.equal(messageOf(bounded.safeParse('999ms')), 'expected at least 1s');
    assert.equal(messageOf(bounded.safeParse('3min')), 'expected at most 2min');
  });

  test('uses the default of a duration that is left out', () => {
    assert.equal(duration('1h').parse(undefined), 3_600_000);
  });

  test('writes rates, sizes and percentages as users do', () => {
    const texts: readonly (readonly [Unit, string])[] = [
      [rates, '50/s'],
      [rates, '100/min'],
      [rates, '10/h'],
      [rates, '1.5/h'],
      [rates, '0.123456789/s'],
      [sizes, '64KiB'],
      [sizes, '1MiB'],
      [sizes, '1025B'],
      [percentages, '50%'],
      [percentages, '0.1%'],
      [percentages, '0%'],
    ];
    for (const [unit, text] of texts)
      assert.equal(formatQuantity(unit, parseQuantity(unit, text) ?? Number.NaN), text);
  });

  test('parses a formatted quantity to the same value', () => {
    for (const unit of Object.values(unitsByName))
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 100_000 }),
          fc.constantFrom(...Object.keys(unit.factors)),
          (count, name) => {
            const value = parseQuantity(unit, `${count % 1_000}${name}`) ?? Number.NaN;
            const parsed = parseQuantity(unit, formatQuantity(unit, value)) ?? Number.NaN;
            assert.ok(Math.abs(parsed - value) <= value * 1e-12, formatQuantity(unit, value));
          },
        ),
      );
  });

  test('parses a formatted duration to the same value', () => {
    fc.assert(fc.property(fc.nat(), (ms) => assert.equal(parseQuantity(durations, formatDuration(ms)), ms)));
  });

  test('formats a duration in the largest unit that divides it evenly', () => {
    assert.deepEqual([0, 1500, 2000, 90_000, 120_000, 86_400_000].map(formatDuration), [
      '0ms',
      '1500ms',
      '2s',
      '90s',
      '2min',
      '1d',
    ]);
  });
});

describe('sizes', () => {
  test('parses sizes to bytes, in powers of 1024', () => {
    assert.deepEqual(
      ['512B', '64KiB', '1MiB', '2GiB'].map((text) => parseQuantity(sizes, text)),
      [512, 65_536, 1_048_576, 2_147_483_648],
    );
  });

  test('refuses a size in a unit that may mean 1000 or 1024', () => {
    for (const [text, similar] of [
      ['1MB', '1MiB'],
      ['1M', '1MiB'],
      ['1kB', '1KiB'],
      ['1mib', '1MiB'],
    ])
      assert.equal(
        messageOf(size('1MiB').safeParse(text)),
        `expected a size such as 512B, 64KiB or 1MiB (did you mean ${similar}?)`,
      );
  });

  test('refuses a size of zero', () => {
    assert.equal(messageOf(size('1MiB').safeParse('0B')), 'expected at least 1B');
  });
});

describe('rates', () => {
  test('parses rates to tokens per second', () => {
    assert.deepEqual(
      ['50/s', '120/min', '7200/h', '0.5/s'].map((text) => parseQuantity(rates, text)),
      [50, 2, 2, 0.5],
    );
  });

  test('refuses a rate of zero', () => {
    assert.equal(messageOf(rate('1/s').safeParse('0/s')), 'expected at least 1/h');
  });

  test('refuses a rate without a unit, and gives examples', () => {
    assert.equal(
      messageOf(rate('1/s').safeParse('50')),
      'expected a rate such as 50/s, 100/min or 10/h; add the unit to the number',
    );
    assert.equal(
      messageOf(rate('1/s').safeParse('600rpm')),
      'expected a rate such as 50/s, 100/min or 10/h (did you mean 10/s?)',
    );
  });
});

describe('percentages', () => {
  test('parses percentages to fractions', () => {
    assert.deepEqual(
      ['0%', '50%', '12.5%', '100%'].map((text) => parseQuantity(percentages, text)),
      [0, 0.5, 0.125, 1],
    );
  });

  test('refuses a percentage above 100%', () => {
    assert.equal(messageOf(percent('50%').safeParse('101%')), 'expected at most 100%');
  });

  test('refuses a fraction as a percentage: 0.5 may mean a half or half a percent', () => {
    assert.equal(
      messageOf(percent('50%').safeParse(0.5)),
      'expected a percentage such as 50%; add the unit to the number',
    );
  });
});

test('parses or refuses any text as a quantity, and never throws', () => {
  const likely = fc.stringMatching(/^-?\d{0,12}\.?\d{0,3} ?[a-zA-Z/%]{0,4}$/);
  fc.assert(
    fc.property(fc.oneof(fc.string(), likely), (text) => {
      for (const unit of [durations, sizes, rates, percentages]) {
        const amount = parseQuantity(unit, text);
        assert.ok(amount === undefined || (Number.isFinite(amount) && amount >= 0));
      }
    }),
  );
});

test('parses every whole number of every unit to that multiple of the unit', () => {
  fc.assert(
    fc.property(fc.nat({ max: 999 }), (number) => {
      for (const unit of [durations, sizes, rates, percentages])
        for (const [name, factor] of Object.entries(unit.factors))
          assert.equal(parseQuantity(unit, `${number}${name}`), number * factor);
    }),
  );
});
