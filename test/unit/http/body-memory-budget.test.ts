import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBodyMemoryBudget } from '../../../src/http/body-memory-budget.ts';

/** Room for 100 bytes, and who was turned away from it. */
function roomForHundred() {
  const room = createBodyMemoryBudget(100);
  const away: string[] = [];
  return { away, enter: (name: string) => room.register(() => away.push(name)) };
}

describe('room for bodies that are on their way', () => {
  test('has whoever has been sending for longest go, and no more than must', () => {
    const { away, enter } = roomForHundred();
    const [first, second, third] = [enter('first'), enter('second'), enter('third')];
    first.grow(40);
    second.grow(40);
    third.grow(20);
    assert.deepEqual(away, []);
    third.grow(1);
    assert.deepEqual(away, ['first']);
    third.grow(39);
    assert.deepEqual(away, ['first']);
  });

  test('is there again when a body has come, or will not come any more', () => {
    const { away, enter } = roomForHundred();
    const done = enter('done');
    done.grow(90);
    done.release();
    done.release();
    enter('next').grow(100);
    assert.deepEqual(away, []);
  });

  test('counts nothing any more of whoever was turned away', () => {
    const { away, enter } = roomForHundred();
    const large = enter('large');
    large.grow(101);
    large.grow(50);
    enter('next').grow(100);
    assert.deepEqual(away, ['large']);
  });
});
