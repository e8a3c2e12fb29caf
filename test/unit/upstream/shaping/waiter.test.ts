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
});
