import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usualInitiationsOf } from '../../../src/alerts/usual-initiations.ts';

const hourOf = (hour: number, accepted: number, refused: number, bankMs: number) => [
  { environment: 'production', hour, result: 'accepted', count: accepted, bankMs },
  { environment: 'production', hour, result: '400 PAYMENT_FAILED', count: refused, bankMs: 0 },
  { environment: 'production', hour, result: 'failed', count: 100, bankMs: 500_000 },
];
const usual = { environment: 'production', refusedShare: 0.04, answerMs: 100 };

test('what is usual is that of the median hour, not of an incident of some hours', () => {
  const quiet = [1, 2, 3, 4].flatMap((hour) => hourOf(hour, 860, 40, 90_000));
  const incident = [5, 6, 7].flatMap((hour) => hourOf(hour, 100, 1_800, 19_000_000));
  assert.deepEqual(usualInitiationsOf([...incident, ...quiet], 8), [usual]);
});

test('hours with a few refused payments at night do not make refusals usual', () => {
  const days = [1, 2, 3].flatMap((hour) => hourOf(hour, 860, 40, 90_000));
  const nights = Array.from({ length: 13 }, (_, index) => ({
    ...{ environment: 'production', hour: 4 + index, result: '400 FORMAT_ERROR', count: 1, bankMs: 50 },
  }));
  assert.deepEqual(usualInitiationsOf([...days, ...nights], 20), [usual]);
});

test('the current hour is not usual, and two hours are too few', () => {
  const hours = [1, 2, 3].flatMap((hour) => hourOf(hour, 860, 40, 90_000));
  assert.deepEqual(usualInitiationsOf(hours, 3), []);
});

test('an environment without answers has no usual time', () => {
  const rows = [1, 2, 3].map((hour) => ({
    ...{ environment: 'production', hour, result: 'failed', count: 50, bankMs: 60_000 },
  }));
  assert.deepEqual(usualInitiationsOf(rows, 4), [
    { environment: 'production', refusedShare: 0, answerMs: 0 },
  ]);
});
