/** Emptying the cache by hand, and paying late what was to be forgotten. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/flow/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createForgetting } from '../../../src/status-cache/forgetting.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createHeldState } from '../../kit/held-state.ts';
import { createInstance, statusAnswer, statusRead } from './instance.ts';

const bank = async () => statusAnswer('ACCC');
const outOfReach = new GatewayError('STATE_UNAVAILABLE', 'The shared state cannot be reached.');

describe('emptying the cache', () => {
  test('of one payment leaves the others, on both instances', async () => {
    const state = createMemoryState();
    const [here, there] = [createInstance(state, bank), createInstance(state, bank)];
    for (const payment of ['one', 'two']) await here.ask(statusRead({ payment }));
    await here.purge({ environment: 'sandbox', payment: 'one' });
    assert.equal((await there.ask(statusRead({ payment: 'one' }))).servedFrom, 'bank');
    assert.equal((await there.ask(statusRead({ payment: 'two' }))).servedFrom, 'cache');
  });

  test('of a payment without an environment looks in every one, and in no other than the one named', async () => {
    const { ask, purge } = createInstance(createMemoryState(), bank);
    await ask(statusRead());
    await purge({ environment: 'production', payment: 'a-payment' });
    assert.equal((await ask(statusRead())).servedFrom, 'cache');
    await purge({ payment: 'a-payment' });
    assert.equal((await ask(statusRead())).servedFrom, 'bank');
  });

  test('of everything reaches both instances, at once or with their next beat', async () => {
    const state = createMemoryState();
    const [here, there] = [createInstance(state, bank), createInstance(state, bank)];
    for (const payment of ['one', 'two']) await here.ask(statusRead({ payment }));
    assert.equal((await there.ask(statusRead({ payment: 'two' }))).servedFrom, 'cache');
    await here.purge({});
    assert.equal((await here.ask(statusRead({ payment: 'one' }))).servedFrom, 'bank');
    await there.beat();
    assert.equal((await there.ask(statusRead({ payment: 'two' }))).servedFrom, 'bank');
  });

  test('is not undone by a look that was under way', async () => {
    const state = createHeldState();
    const { ask, purge, beat } = createInstance(state, bank);
    await ask(statusRead());
    const letGo = state.hold('read');
    const looking = beat();
    const emptied = purge({});
    letGo();
    await Promise.all([looking, emptied]);
    assert.equal((await ask(statusRead())).servedFrom, 'bank');
  });

  test('says so if it cannot be done', async () => {
    const state = createFailingState();
    const { ask, purge } = createInstance(state, bank);
    await ask(statusRead());
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
    const forgetting = createForgetting({ forget: pay, forgetEverything: () => pay('everything') });
    const heal = () => {
      fails = false;
    };
    return { forgetting, paid, heal };
  }

  test('stays owed until it could be paid, and is paid once', async () => {
    const { forgetting, paid, heal } = debts();
    forgetting.later('one');
    await assert.rejects(forgetting.settle(), outOfReach);
    heal();
    await forgetting.settle();
    await forgetting.settle();
    assert.deepEqual(paid, ['one']);
  });

  test('is paid for one payment before anything is read of it', async () => {
    const { forgetting, paid, heal } = debts();
    forgetting.later('one');
    forgetting.later('two');
    await assert.rejects(forgetting.settleOf('two'), outOfReach);
    await forgetting.settleOf('three');
    heal();
    await forgetting.settleOf('two');
    assert.deepEqual(paid, ['two']);
  });

  test('is owed anew if it is owed again while it is being paid', async () => {
    const paying = Promise.withResolvers<void>();
    let times = 0;
    const forget = async () => {
      times++;
      await paying.promise;
    };
    const forgetting = createForgetting({ forget, forgetEverything: forget });
    forgetting.later('one');
    const settling = forgetting.settle();
    await setImmediate();
    forgetting.later('one');
    paying.resolve();
    await settling;
    await forgetting.settle();
    assert.equal(times, 2);
  });

  test('is everything, once it is too much to remember', async () => {
    const { forgetting, paid, heal } = debts();
    for (let index = 0; index < 30_000; index++) forgetting.later(`payment ${index}`);
    await assert.rejects(forgetting.settleOf('payment 29999'), outOfReach);
    heal();
    await forgetting.settleOf('payment 29999');
    assert.deepEqual(paid, ['everything']);
  });
});
