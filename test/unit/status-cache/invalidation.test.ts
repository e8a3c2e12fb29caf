/** Emptying the cache by hand, and paying late what was to be forgotten. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createInvalidation } from '../../../src/status-cache/cache-store.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createCacheInstance, statusRead, statusResponse } from './cache-instance.ts';

const bank = async () => statusResponse('ACCC');
const outOfReach = new GatewayError('STATE_UNAVAILABLE', 'The shared state cannot be reached.');

describe('emptying the cache', () => {
  test('of one payment leaves the others, on both instances', async () => {
    const state = createMemoryState();
    const [here, there] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    for (const payment of ['one', 'two']) await here.send(statusRead({ payment }));
    await here.purge({ environment: 'sandbox', payment: 'one' });
    assert.equal((await there.send(statusRead({ payment: 'one' }))).servedFrom, 'bank');
    assert.equal((await there.send(statusRead({ payment: 'two' }))).servedFrom, 'cache');
  });

  test('of a payment without an environment looks in every one, and in no other than the one named', async () => {
    const { send, purge } = createCacheInstance(createMemoryState(), bank);
    await send(statusRead());
    await purge({ environment: 'production', payment: 'a-payment' });
    assert.equal((await send(statusRead())).servedFrom, 'cache');
    await purge({ payment: 'a-payment' });
    assert.equal((await send(statusRead())).servedFrom, 'bank');
  });

  test('of everything reaches both instances, at once or with their next beat', async () => {
    const state = createMemoryState();
    const [here, there] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    for (const payment of ['one', 'two']) await here.send(statusRead({ payment }));
    assert.equal((await there.send(statusRead({ payment: 'two' }))).servedFrom, 'cache');
    await here.purge({});
    assert.equal((await here.send(statusRead({ payment: 'one' }))).servedFrom, 'bank');
    await there.runMaintenance();
    assert.equal((await there.send(statusRead({ payment: 'two' }))).servedFrom, 'bank');
  });

  test('is not undone by a look that was under way', async () => {
    const state = createBlockingState();
    const { send, purge, runMaintenance } = createCacheInstance(state, bank);
    await send(statusRead());
    const letGo = state.block('read');
    const looking = runMaintenance();
    const emptied = purge({});
    letGo();
    await Promise.all([looking, emptied]);
    assert.equal((await send(statusRead())).servedFrom, 'bank');
  });

  test('says so if it cannot be done', async () => {
    const state = createFailingState();
    const { send, purge } = createCacheInstance(state, bank);
    await send(statusRead());
    state.fail();
    await assert.rejects(purge({}), { code: 'STATE_UNAVAILABLE' });
    await assert.rejects(purge({ payment: 'a-payment' }), { code: 'STATE_UNAVAILABLE' });
  });
});

describe('what is owed to the state', () => {
  function debts() {
    let fails = true;
    const paid: string[] = [];
    const pay = async (key: string) => {
      if (fails) throw outOfReach;
      paid.push(key);
    };
    const forgetting = createInvalidation({ invalidatePayment: pay, invalidateAll: () => pay('everything') });
    const heal = () => {
      fails = false;
    };
    return { forgetting, paid, heal };
  }

  test('stays owed until it could be paid, and is paid once', async () => {
    const { forgetting, paid, heal } = debts();
    forgetting.later('one');
    await assert.rejects(forgetting.flush(), outOfReach);
    heal();
    await forgetting.flush();
    await forgetting.flush();
    assert.deepEqual(paid, ['one']);
  });

  test('is paid for one payment before anything is read of it', async () => {
    const { forgetting, paid, heal } = debts();
    forgetting.later('one');
    forgetting.later('two');
    await assert.rejects(forgetting.flushPayment('two'), outOfReach);
    await forgetting.flushPayment('three');
    heal();
    await forgetting.flushPayment('two');
    assert.deepEqual(paid, ['two']);
  });

  test('is owed anew if it is owed again while it is being paid', async () => {
    const paying = Promise.withResolvers<void>();
    let times = 0;
    const invalidatePayment = async () => {
      times++;
      await paying.promise;
    };
    const forgetting = createInvalidation({ invalidatePayment, invalidateAll: invalidatePayment });
    forgetting.later('one');
    const settling = forgetting.flush();
    await setImmediate();
    forgetting.later('one');
    paying.resolve();
    await settling;
    await forgetting.flush();
    assert.equal(times, 2);
  });

  test('is everything, once it is too much to remember', async () => {
    const { forgetting, paid, heal } = debts();
    for (let index = 0; index < 30_000; index++) forgetting.later(`payment ${index}`);
    await assert.rejects(forgetting.flushPayment('payment 29999'), outOfReach);
    heal();
    await forgetting.flushPayment('payment 29999');
    assert.deepEqual(paid, ['everything']);
  });
});
