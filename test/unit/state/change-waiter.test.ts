import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createChangeWaiter, createWaiters } from '../../../src/state/change-waiter.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';

function createWaiter(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const state = createFailingState(createMemoryState());
  const waiter = createChangeWaiter(state.pubsub, 'channel');
  return { state, waiter, pass: (ms: number) => t.mock.timers.tick(ms) };
}

describe('the change waiter', () => {
  test('wakes all callers that wait for the key that was notified', async (t) => {
    const { waiter } = createWaiter(t);
    let isOtherAwake = false;
    void waiter.nextChange('other').then(() => {
      isOtherAwake = true;
    });
    const changes = [waiter.nextChange('key'), waiter.nextChange('key')];
    waiter.notify('key');
    await Promise.all(changes);
    assert.equal(isOtherAwake, false);
  });

  test('wakes a caller without a notification, in case the message was lost', async (t) => {
    const { state, waiter, pass } = createWaiter(t);
    state.fail('publish');
    const change = waiter.nextChange('key');
    waiter.notify('key');
    pass(200);
    await change;
  });
});

test('waiters of one instance are woken, or look again by themselves', async () => {
  const waiters = createWaiters(10);
  assert.ok(waiters.isEmpty());
  const woken = waiters.nextChange('key');
  const other = waiters.nextChange('other');
  assert.ok(!waiters.isEmpty());
  waiters.wake('key');
  await woken;
  assert.ok(!waiters.isEmpty());
  await other;
  assert.ok(waiters.isEmpty());
});
