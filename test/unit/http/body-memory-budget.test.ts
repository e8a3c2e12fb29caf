import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBodyMemoryBudget } from '../../../src/http/body-memory-budget.ts';

/** A budget of 100 bytes, and the names of the bodies that it has evicted. */
function budgetOfHundred() {
  const budget = createBodyMemoryBudget(100);
  const evicted: string[] = [];
  return { evicted, register: (name: string) => budget.register(() => evicted.push(name)) };
}

describe('the memory budget of request bodies', () => {
  test('evicts the oldest body when it is exceeded, and no more than necessary', () => {
    const { evicted, register } = budgetOfHundred();
    const [first, second, third] = [register('first'), register('second'), register('third')];
    first.grow(40);
    second.grow(40);
    third.grow(20);
    assert.deepEqual(evicted, []);
    third.grow(1);
    assert.deepEqual(evicted, ['first']);
    third.grow(39);
    assert.deepEqual(evicted, ['first']);
  });

  test('reuses the memory of a released body', () => {
    const { evicted, register } = budgetOfHundred();
    const done = register('done');
    done.grow(90);
    done.release();
    done.release();
    register('next').grow(100);
    assert.deepEqual(evicted, []);
  });

  test('does not count an evicted body that grows further', () => {
    const { evicted, register } = budgetOfHundred();
    const large = register('large');
    large.grow(101);
    large.grow(50);
    register('next').grow(100);
    assert.deepEqual(evicted, ['large']);
  });
});
