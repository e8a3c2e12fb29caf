import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInstanceCount } from '../../../src/telemetry/instance-count.ts';
import { captureLog } from '../../kit/log-capture.ts';

/** A watch that expects two instances, and counts as many as the test says at every look. */
function startWatch() {
  const { log, lines } = captureLog();
  const there = { count: async () => 1 };
  const watch = createInstanceCount({ count: () => there.count(), expected: () => 2, log });
  const look = async () => {
    for (let turn = 0; turn < 5; turn++) await watch.refresh();
  };
  return { watch, lines, look, there };
}

describe('the watch over instances', () => {
  test('warns once while there are more than expected, and again when it happens again', async () => {
    const { watch, lines, look, there } = startWatch();
    for (const [live, warnings] of [
      [2, 0],
      [3, 1],
      [4, 1],
      [2, 1],
      [3, 2],
    ] as const) {
      there.count = async () => live;
      await look();
      assert.deepEqual([watch.live(), lines.length], [live, warnings]);
    }
    assert.deepEqual(lines[0]?.fields, { live: 3, expected: 2 });
  });

  test('keeps its last count while the state cannot be asked', async () => {
    const { watch, look, there } = startWatch();
    await look();
    there.count = () => Promise.reject(new Error('out of reach'));
    await look();
    assert.equal(watch.live(), 1);
  });

  test('knows nothing before the first count', () => {
    assert.equal(startWatch().watch.live(), undefined);
  });
});
