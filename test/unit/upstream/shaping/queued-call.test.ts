import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createQueuedCall } from '../../../../src/upstream/shaping/queued-call.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

const call = { lane: 'read', tenant: 'shop', deadlineAtMs: 0 } as const;

describe('queued call', () => {
  test('reports a timeout once when its time is over', async (t) => {
    const time = simulateTime(t);
    const late: unknown[] = [];
    const { queuedCall } = createQueuedCall(call, 100, {
      onTimeout: (call) => late.push(call),
      onDisconnect: () => {},
    });
    queuedCall.startTimer(100);
    queuedCall.startTimer(500);
    await time.pass(100);
    assert.deepEqual(late, [queuedCall]);
  });

  test('starts no timer after it was admitted', async (t) => {
    const time = simulateTime(t);
    const late: unknown[] = [];
    const { queuedCall, admitted } = createQueuedCall(call, 100, {
      onTimeout: (call) => late.push(call),
      onDisconnect: () => {},
    });
    queuedCall.admit();
    queuedCall.startTimer(100);
    await admitted;
    await time.pass(1_000);
    assert.deepEqual(late, []);
  });

  test('reports the disconnect of its TPP, before or after its timer is started', () => {
    const disconnected: unknown[] = [];
    const queuedCallOf = (signal: AbortSignal) =>
      createQueuedCall({ ...call, signal }, 100, {
        onTimeout: () => {},
        onDisconnect: (call) => disconnected.push(call),
      }).queuedCall;
    const [before, after] = [new AbortController(), new AbortController()];
    const [first, second] = [queuedCallOf(before.signal), queuedCallOf(after.signal)];

    before.abort();
    assert.deepEqual(
      [first.isDisconnected(), disconnected],
      [true, []],
      'it does not listen before its timer is started',
    );
    first.startTimer(100);
    second.startTimer(100);
    assert.deepEqual([second.isDisconnected(), disconnected], [false, [first]]);
    after.abort();
    assert.deepEqual([second.isDisconnected(), disconnected], [true, [first, second]]);
    second.admit(); // ends its timer
  });
});
