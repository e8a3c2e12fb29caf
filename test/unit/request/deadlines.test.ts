import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createDeadlines } from '../../../src/request/deadlines.ts';
import { until } from '../../kit/within.ts';

/** Sets deadlines by name, and records those that have passed. */
function startDeadlines() {
  const setDeadline = createDeadlines();
  const passed: { readonly name: string; readonly earlyMs: number }[] = [];
  return {
    passed,
    names: () => passed.map(({ name }) => name),
    set(name: string, inMs: number, also: () => void = () => {}) {
      const atMs = performance.now() + inMs;
      return setDeadline(atMs, () => {
        passed.push({ name, earlyMs: atMs - performance.now() });
        also();
      });
    },
  };
}

describe('deadlines with one timer', () => {
  test('are reported once, and never early, in whatever order they were set', async () => {
    const { set, passed, names } = startDeadlines();
    for (const inMs of [40, 0, 20, -5, 30, 10]) set(`${inMs}`, inMs);
    await until(5_000, 'all have passed', () => passed.length === 6);
    assert.deepEqual(names().toSorted(), ['-5', '0', '10', '20', '30', '40']);
    assert.ok(passed.every(({ earlyMs }) => earlyMs <= 0));
  });

  test('are not reported after they were cleared, even if the callback of another one clears them', async () => {
    const { set, passed, names } = startDeadlines();
    const clear = set('cleared before', 5);
    set('first', 10, () => clearSecond());
    const clearSecond = set('cleared by the first', 10);
    clear();
    set('last', 20);
    await until(5_000, 'the last has passed', () => names().includes('last'));
    assert.deepEqual(names(), ['first', 'last']);
    assert.equal(passed.length, 2);
  });

  test('can be set while one is reported', async () => {
    const { set, names } = startDeadlines();
    set('first', 5, () => set('second', 5));
    await until(5_000, 'both have passed', () => names().length === 2);
    assert.deepEqual(names(), ['first', 'second']);
  });
});
