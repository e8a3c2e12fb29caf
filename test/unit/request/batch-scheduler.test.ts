import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createBatchScheduler } from '../../../src/request/batch-scheduler.ts';

describe('a batch scheduler', () => {
  test('runs the callbacks of one turn together at its end', async () => {
    const schedule = createBatchScheduler();
    const ran: string[] = [];
    for (const name of ['a', 'b', 'c']) schedule(() => ran.push(name));
    assert.deepEqual(ran, []);
    await nextTurn();
    assert.deepEqual(ran, ['a', 'b', 'c']);
  });

  test('runs 32 callbacks per turn, in the order in which they were scheduled', async () => {
    const schedule = createBatchScheduler();
    const ran: number[] = [];
    const scheduleNumbers = (from: number, to: number) => {
      for (let number = from; number < to; number++) schedule(() => ran.push(number));
    };
    scheduleNumbers(0, 70);
    await nextTurn();
    assert.equal(ran.length, 32);
    scheduleNumbers(70, 80);
    await nextTurn();
    assert.equal(ran.length, 64);
    await nextTurn();
    assert.deepEqual(
      ran,
      Array.from({ length: 80 }, (_, number) => number),
    );
  });

  test('runs a callback that is scheduled by another one after the current batch', async () => {
    const schedule = createBatchScheduler();
    const ran: string[] = [];
    schedule(() => {
      ran.push('first');
      schedule(() => ran.push('third'));
    });
    schedule(() => ran.push('second'));
    await nextTurn();
    await nextTurn();
    assert.deepEqual(ran, ['first', 'second', 'third']);
  });
});
