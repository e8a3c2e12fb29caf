import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/flow/errors.ts';
import { createOwed } from '../../../src/state/owed.ts';

/** An act that fails until the state is well. */
function acts() {
  const done: string[] = [];
  let isWell = false;
  const act = (name: string) => async () => {
    if (!isWell) throw stateUnavailable();
    done.push(name);
  };
  return {
    done,
    act,
    heal: () => {
      isWell = true;
    },
  };
}

const owing = () => createOwed<() => Promise<void>>((act) => act());

describe('what the state is told', () => {
  test('at once is not owed any more', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    heal();
    await owed.now('one', act('told'));
    await owed.settle();
    assert.deepEqual(done, ['told']);
  });

  test('in vain is told again until it is taken, once', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    await owed.now('one', act('told'));
    await assert.rejects(owed.settle(), { code: 'STATE_UNAVAILABLE' });
    heal();
    await owed.settle();
    await owed.settle();
    assert.deepEqual(done, ['told']);
  });

  test('last of one thing is what counts, and other things stay owed beside it', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    await owed.now('one', act('doubt'));
    await owed.now('other', act('another'));
    await owed.now('one', act('answer'));
    heal();
    await owed.settle();
    assert.deepEqual(done.toSorted(), ['another', 'answer']);
  });

  test('while an older telling of the same thing is under way is not forgotten when that one ends', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    const { promise, resolve } = Promise.withResolvers<void>();
    const older = owed.now('one', () => promise);
    await owed.now('one', act('answer'));
    resolve();
    await older;
    heal();
    await owed.settle();
    assert.deepEqual(done, ['answer']);
  });

  test('is not told again after something newer in its place has been', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    await owed.now('one', async () => {
      await act('one in doubt')();
      await held;
    });
    await owed.now('another', act('another in doubt'));
    heal();
    const settled = owed.settle();
    await owed.now('another', act('another answered'));
    letGo();
    await settled;
    assert.deepEqual(done, ['one in doubt', 'another answered']);
  });

  test('in vain does not keep the others from it for ever', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    owed.add('poisoned', () => Promise.reject(stateUnavailable()));
    owed.add('other', act('other'));
    heal();
    await assert.rejects(owed.settle());
    await assert.rejects(owed.settle());
    assert.deepEqual([done, owed.size()], [['other'], 1]);
  });
});
