import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLabelledValues } from '../../../src/telemetry/labelled-values.ts';

test('each combination of labels has one tally, whatever another one would look like as a text', () => {
  const tallies = createLabelledValues(['one', 'other'], () => ({ count: 0 }));
  const count = (one: string, other: string) => {
    tallies.of({ one, other }).count += 1;
  };
  count('a', 'b,c');
  count('a,b', 'c');
  count('', 'a');
  count('a', '');
  count('a', 'b,c');
  assert.deepEqual(
    tallies.all().map(({ labels, value }) => [labels, value.count]),
    [
      [{ one: 'a', other: 'b,c' }, 2],
      [{ one: 'a,b', other: 'c' }, 1],
      [{ one: '', other: 'a' }, 1],
      [{ one: 'a', other: '' }, 1],
    ],
  );
});

test('a metric without labels has one tally', () => {
  const tallies = createLabelledValues([], () => ({ count: 0 }));
  tallies.of({}).count += 1;
  tallies.of({}).count += 1;
  assert.deepEqual(tallies.all(), [{ labels: {}, value: { count: 2 } }]);
});
