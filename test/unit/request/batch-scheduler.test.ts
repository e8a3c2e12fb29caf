import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createBatchScheduler } from '../../../src/request/batch-scheduler.ts';

test('those that come together take each step together', async () => {
  const inStep = createBatchScheduler();
  const steps: string[] = [];
  for (const name of ['a', 'b', 'c'])
    inStep(async () => {
      steps.push(`${name}1`);
      await undefined;
      steps.push(`${name}2`);
    });
  assert.deepEqual(steps, []);
  await nextTurn();
  assert.deepEqual(steps, ['a1', 'b1', 'c1', 'a2', 'b2', 'c2']);
});

test('those behind the first 32 go on in later turns, in their order, with whoever comes meanwhile', async () => {
  const inStep = createBatchScheduler();
  const gone: number[] = [];
  const come = (from: number, to: number) => {
    for (let number = from; number < to; number++) inStep(() => gone.push(number));
  };
  come(0, 70);
  await nextTurn();
  assert.equal(gone.length, 32);
  come(70, 80);
  await nextTurn();
  assert.equal(gone.length, 64);
  await nextTurn();
  assert.deepEqual(
    gone,
    Array.from({ length: 80 }, (_, number) => number),
  );
});

test('one that comes while others go on goes on after them', async () => {
  const inStep = createBatchScheduler();
  const gone: string[] = [];
  inStep(() => {
    gone.push('first');
    inStep(() => gone.push('third'));
  });
  inStep(() => gone.push('second'));
  await nextTurn();
  await nextTurn();
  assert.deepEqual(gone, ['first', 'second', 'third']);
});
