import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHistogram } from '../../../src/telemetry/histogram.ts';

test('a histogram counts a value in every bucket whose bound it does not exceed, and in +Inf', () => {
  const histogram = createHistogram('waits', ['lane'], [1, 2]);
  for (const value of [0.5, 1, 1.5, 9]) histogram.of({ lane: 'write' }).observe(value);
  histogram.of({ lane: 'read' }).observe(2);
  assert.deepEqual(
    histogram.samples().map(({ metricName, labels, value }) => [metricName, ...Object.values(labels), value]),
    [
      ['waits_bucket', 1, 'write', 2],
      ['waits_bucket', 2, 'write', 3],
      ['waits_bucket', '+Inf', 'write', 4],
      ['waits_sum', 'write', 12],
      ['waits_count', 'write', 4],
      ['waits_bucket', 1, 'read', 0],
      ['waits_bucket', 2, 'read', 1],
      ['waits_bucket', '+Inf', 'read', 1],
      ['waits_sum', 'read', 2],
      ['waits_count', 'read', 1],
    ],
  );
});
