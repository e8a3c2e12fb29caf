import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLabelledValues } from '../../../src/telemetry/labelled-values.ts';

test('each combination of labels has its own value, even if two combinations look the same when concatenated', () => {
  const values = createLabelledValues(['one', 'other'], () => ({ count: 0 }));
  const count = (one: string, other: string) => {
    values.of({ one, other }).count += 1;
  };
  count('a', 'b,c');
  count('a,b', 'c');
  count('', 'a');
  count('a', '');
  count('a', 'b,c');
  assert.deepEqual(
    values.all().map(({ labels, value }) => [labels, value.count]),
    [
      [{ one: 'a', other: 'b,c' }, 2],
      [{ one: 'a,b', other: 'c' }, 1],
      [{ one: '', other: 'a' }, 1],
      [{ one: 'a', other: '' }, 1],
    ],
  );
});

test('a metric without labels has one value', () => {
  const values = createLabelledValues([], () => ({ count: 0 }));
  values.of({}).count += 1;
  values.of({}).count += 1;
  assert.deepEqual(values.all(), [{ labels: {}, value: { count: 2 } }]);
});
