import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSubscriptionLimit } from '../../../src/notifications/subscription-limit.ts';
import { subscriptionSince } from '../../kit/subscription.ts';
import { newSubscriptions } from '../../kit/subscription-table.ts';

describe('the limit of subscriptions', () => {
  test('counts the subscriptions of a tenant in all environments, once per second', async (t) => {
    const { table, put } = await newSubscriptions(t);
    let nowMs = 0;
    const limit = createSubscriptionLimit({ countOf: table.countOf, max: () => 3, now: () => nowMs });
    const add = (paymentId: string, tenant: string, environment: string) =>
      put(subscriptionSince(Date.now(), { paymentId, tenant, environment }));
    await add('1', 'shop', 'sandbox');
    await add('2', 'shop', 'production');
    await add('3', 'rival', 'sandbox');
    assert.equal(await limit.isReached('shop'), false);
    await add('4', 'shop', 'sandbox');
    assert.equal(await limit.isReached('shop'), false, 'the count is used for a second');
    nowMs = 1_000;
    assert.equal(await limit.isReached('shop'), true);
    assert.equal(await limit.isReached('rival'), false);
  });
});
