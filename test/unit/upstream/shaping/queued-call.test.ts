import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createQueuedCall } from '../../../../src/upstream/shaping/queued-call.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const call = { lane: 'read', tenant: 'shop', deadlineAtMs: 0 } as const;

describe('a call that waits', () => {
  test('is late when its time is over', async (t) => {
    const time = simulateTime(t);
    const late: unknown[] = [];
    const { waiter } = createQueuedCall(call, 100, {
      onTimeout: (one) => late.push(one),
      onDisconnect: () => {},
    });
    waiter.startTimer(100);
    waiter.startTimer(500);
    await time.pass(100);
    assert.deepEqual(late, [waiter]);
  });

  test('leaves no timer behind when it has gone, even if its clock is started only then', async (t) => {
    const time = simulateTime(t);
    const late: unknown[] = [];
    const { waiter, gone } = createQueuedCall(call, 100, {
      onTimeout: (one) => late.push(one),
      onDisconnect: () => {},
    });
    waiter.admit();
    waiter.startTimer(100);
    await gone;
    await time.pass(1_000);
    assert.deepEqual(late, []);
  });

  test('is told that its TPP has left, before its clock is started or after', () => {
    const left: unknown[] = [];
    const waiterOf = (signal: AbortSignal) =>
      createQueuedCall({ ...call, signal }, 100, {
        onTimeout: () => {},
        onDisconnect: (one) => left.push(one),
      }).waiter;
    const [before, after] = [new AbortController(), new AbortController()];
    const [first, second] = [waiterOf(before.signal), waiterOf(after.signal)];

    before.abort();
    assert.deepEqual(
      [first.isDisconnected(), left],
      [true, []],
      'nobody listens before the clock is started',
    );
    first.startTimer(100);
    second.startTimer(100);
    assert.deepEqual([second.isDisconnected(), left], [false, [first]]);
    after.abort();
    assert.deepEqual([second.isDisconnected(), left], [true, [first, second]]);
    second.admit(); // ends its timer
  });
});
