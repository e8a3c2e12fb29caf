import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createPendingWrites } from '../../../src/state/pending-writes.ts';

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

const owing = () => createPendingWrites<() => Promise<void>>((act) => act());

describe('what the state is told', () => {
  test('at once is not owed any more', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    heal();
    await owed.addAndFlush('one', act('told'));
    await owed.flush();
    assert.deepEqual(done, ['told']);
  });

  test('in vain is told again until it is taken, once', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    await owed.addAndFlush('one', act('told'));
    await assert.rejects(owed.flush(), { code: 'STATE_UNAVAILABLE' });
    heal();
    await owed.flush();
    await owed.flush();
    assert.deepEqual(done, ['told']);
  });

  test('last of one thing is what counts, and other things stay owed beside it', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    await owed.addAndFlush('one', act('doubt'));
    await owed.addAndFlush('other', act('another'));
    await owed.addAndFlush('one', act('answer'));
    heal();
    await owed.flush();
    assert.deepEqual(done.toSorted(), ['another', 'answer']);
  });

  test('while an older telling of the same thing is under way is not forgotten when that one ends', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    const { promise, resolve } = Promise.withResolvers<void>();
    const older = owed.addAndFlush('one', () => promise);
    await owed.addAndFlush('one', act('answer'));
    resolve();
    await older;
    heal();
    await owed.flush();
    assert.deepEqual(done, ['answer']);
  });

  test('is not told again after something newer in its place has been', async () => {
    const { done, act, heal } = acts();
    const owed = owing();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    await owed.addAndFlush('one', async () => {
      await act('one in doubt')();
      await held;
    });
    await owed.addAndFlush('another', act('another in doubt'));
    heal();
    const settled = owed.flush();
    await owed.addAndFlush('another', act('another answered'));
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
    await assert.rejects(owed.flush());
    await assert.rejects(owed.flush());
    assert.deepEqual([done, owed.size()], [['other'], 1]);
  });
});
