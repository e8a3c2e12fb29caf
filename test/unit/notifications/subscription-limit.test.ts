import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSubscriptionLimit } from '../../../src/notifications/subscription-limit.ts';
import { queueNames } from '../../../src/notifications/subscription-store.ts';
import { createMemorySchedules } from '../../../src/state/former/memory-schedules.ts';

describe('the limit of subscriptions', () => {
  test('counts the subscriptions and messages of a tenant in all environments, once per second', async () => {
    const schedules = createMemorySchedules(() => 0);
    let nowMs = 0;
    const limit = createSubscriptionLimit({
      schedules,
      environmentIds: () => ['sandbox', 'production'],
      max: () => 3,
      now: () => nowMs,
    });
    const add = (key: string, queue: string) => schedules.write(key, 0, '{}', [{ queue, inMs: 1_000 }]);
    await add('1', queueNames.poll({ tenant: 'shop', environment: 'sandbox' }));
    await add('2', queueNames.poll({ tenant: 'shop', environment: 'production' }));
    await add('3', queueNames.poll({ tenant: 'rival', environment: 'sandbox' }));
    assert.equal(await limit.isReached('shop'), false);
    await add('4', queueNames.dead('shop'));
    assert.equal(await limit.isReached('shop'), false, 'the count is used for a second');
    nowMs = 1_000;
    assert.equal(await limit.isReached('shop'), true);
    assert.equal(await limit.isReached('rival'), false);
  });
});
