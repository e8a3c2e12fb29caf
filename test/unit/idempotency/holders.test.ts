import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createHolders } from '../../../src/idempotency/holders.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { leaseMs, stopped } from './ledger.ts';

function two() {
  const state = createFailingState();
  return {
    state,
    one: createHolders(state.keyValues, state.sets),
    other: createHolders(state.keyValues, state.sets),
  };
}

describe('an instance', () => {
  test('counts as alive from when it has introduced itself until it has not been heard of for a lease', async (t) => {
    const clocks = stopped(t);
    const { one, other } = two();
    assert.equal(await other.isAlive(one.own), false);
    await one.introduce();
    clocks.spend(leaseMs - 1);
    assert.equal(await other.isAlive(one.own), true);
    clocks.spend(1);
    assert.equal(await other.isAlive(one.own), false);
  });

  test('stays alive as long as it says so', async (t) => {
    const clocks = stopped(t);
    const { one, other } = two();
    for (let beat = 0; beat < 20; beat++) {
      await one.renew();
      clocks.spend(leaseMs - 1);
      assert.equal(await other.isAlive(one.own), true);
    }
  });

  test('introduces itself once, however much it carries out', async (t) => {
    stopped(t);
    const { state, one } = two();
    for (let request = 0; request < 3; request++) await one.introduce();
    assert.equal(state.asked.length, 1);
  });

  test('introduces itself again if the state did not take it', async (t) => {
    stopped(t);
    const { state, one, other } = two();
    state.fail();
    await assert.rejects(one.introduce(), { code: 'STATE_UNAVAILABLE' });
    state.heal();
    await one.introduce();
    assert.equal(await other.isAlive(one.own), true);
  });

  test('is gone at once when it leaves, for the others', async (t) => {
    stopped(t);
    const { one, other } = two();
    await one.introduce();
    await one.leave();
    assert.equal(await other.isAlive(one.own), false);
    assert.equal(await one.isAlive(one.own), true, 'it is still there itself');
  });

  test('is counted, by itself and the others, while it is alive', async (t) => {
    const clocks = stopped(t);
    const { one, other } = two();
    assert.equal(await one.count(), 1, 'itself, though nobody has heard of it');
    await Promise.all([one.renew(), other.renew()]);
    await one.count();
    assert.equal(await other.count(), 2);
    clocks.spend(leaseMs);
    assert.equal(await other.count(), 1, 'the dead one no longer');
    await one.renew();
    assert.equal(await one.count(), 1, 'nor those that have not been heard of');
    await other.renew();
    await other.count();
    assert.equal(await one.count(), 2, 'who comes back is counted again');
    await one.leave();
    assert.equal(await other.count(), 1);
  });

  test('is another one after it was started again', () => {
    const { one, other } = two();
    assert.notEqual(one.own, other.own);
  });
});
