import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usualInitiationsOf } from '../../../src/alerts/usual-initiations.ts';

const hourOf = (hour: number, accepted: number, refused: number, bankMs: number) => [
  { environment: 'production', hour, result: 'accepted', count: accepted, bankMs },
  { environment: 'production', hour, result: '400 PAYMENT_FAILED', count: refused, bankMs: 0 },
  { environment: 'production', hour, result: 'failed', count: 100, bankMs: 500_000 },
];

test('what is usual is that of the median hour, not of an incident of some hours', () => {
  const quiet = [1, 2, 3, 4].flatMap((hour) => hourOf(hour, 860, 40, 90_000));
  const incident = [5, 6, 7].flatMap((hour) => hourOf(hour, 100, 1_800, 19_000_000));
  assert.deepEqual(usualInitiationsOf([...incident, ...quiet]), [
    {
      environment: 'production',
      initiations: 4 * 1_000 + 3 * 2_000,
      refusedShare: 0.04,
      answered: 4 * 900 + 3 * 1_900,
      answerMs: 100,
    },
  ]);
});

test('an environment without answers has no usual time', () => {
  const rows = [{ environment: 'production', hour: 1, result: 'failed', count: 5, bankMs: 60_000 }];
  assert.deepEqual(usualInitiationsOf(rows), [
    { environment: 'production', initiations: 5, refusedShare: 0, answered: 0, answerMs: 0 },
  ]);
});
