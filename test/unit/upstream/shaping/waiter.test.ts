import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createWaiter } from '../../../../src/upstream/shaping/waiter.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const call = { lane: 'read', tenant: 'shop', deadlineAtMs: 0 } as const;

describe('a call that waits', () => {
  test('is late when its time is over', async (t) => {
    const time = simulateTime(t);
    const late: unknown[] = [];
    const { waiter } = createWaiter(call, 100, { late: (one) => late.push(one), left: () => {} });
    waiter.startClock(100);
    waiter.startClock(500);
    await time.pass(100);
    assert.deepEqual(late, [waiter]);
  });

  test('leaves no timer behind when it has gone, even if its clock is started only then', async (t) => {
    const time = simulateTime(t);
    const late: unknown[] = [];
    const { waiter, gone } = createWaiter(call, 100, { late: (one) => late.push(one), left: () => {} });
    waiter.go();
    waiter.startClock(100);
    await gone;
    await time.pass(1_000);
    assert.deepEqual(late, []);
  });

  test('is told that its TPP has left, before its clock is started or after', () => {
    const left: unknown[] = [];
    const waiterOf = (signal: AbortSignal) =>
      createWaiter({ ...call, signal }, 100, { late: () => {}, left: (one) => left.push(one) }).waiter;
    const [before, after] = [new AbortController(), new AbortController()];
    const [first, second] = [waiterOf(before.signal), waiterOf(after.signal)];

    before.abort();
    assert.deepEqual([first.hasLeft(), left], [true, []], 'nobody listens before the clock is started');
    first.startClock(100);
    second.startClock(100);
    assert.deepEqual([second.hasLeft(), left], [false, [first]]);
    after.abort();
    assert.deepEqual([second.hasLeft(), left], [true, [first, second]]);
    second.go(); // ends its timer
  });
});
