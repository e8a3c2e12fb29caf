import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { identityOf } from '../../../src/idempotency/fingerprint.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  answer,
  codeOf,
  doubtOf,
  instanceOn,
  keptOf,
  lateAnswerMs,
  leaseMs,
  type OneInstance,
  start,
  stopped,
} from './ledger.ts';
import { initiation } from './requests.ts';

const ids = ['first', 'second', 'third'] as const;
const withId = (requestId: string) => initiation({ requestId });

/** Has an instance send a request, and not hear of it again. */
async function sendBy(instance: OneInstance, requestId: string) {
  const claim = await instance.claim(withId(requestId));
  await claim.pass('sandbox');
  return claim;
}

const listedBy = async ({ lasting }: OneInstance) =>
  (await lasting.doubts.all()).map(({ entry }) => entry.requestId);

describe('what is in doubt', () => {
  test('is listed by every instance, the oldest first', async (t) => {
    const { clocks, state, instance } = start(t);
    for (const id of ids) {
      await (await sendBy(instance, id)).doubt('no answer');
      clocks.spend(10);
    }
    assert.deepEqual(await listedBy(instance), ids);
    assert.deepEqual(await listedBy(instanceOn(state)), ids);
  });

  test('does not hold what runs, was answered, or was given back', async (t) => {
    const { clocks, instance } = start(t);
    const [first, second, third] = [
      await sendBy(instance, 'first'),
      await sendBy(instance, 'second'),
      await sendBy(instance, 'third'),
    ];
    await second.answered(answer(400));
    await third.release();
    clocks.spend(leaseMs);
    assert.deepEqual(await listedBy(instance), []);
    await first.answered(answer(502));
    assert.deepEqual(await listedBy(instance), ['first']);
  });
});

describe('what a dead instance was sending', () => {
  test('is in doubt when anybody looks around, and the log says so once', async (t) => {
    const { clocks, state, instance } = start(t);
    for (const id of ids) await sendBy(instance, id);
    const others = [instanceOn(state), instanceOn(state)];
    clocks.spend(leaseMs - 1);
    assert.equal(await others[0]?.lasting.doubts.lookAround(), 0);
    clocks.spend(1);
    const counts = await Promise.all(others.map(({ lasting }) => lasting.doubts.lookAround()));
    assert.deepEqual(counts, [3, 3]);
    assert.equal(others.flatMap(({ logged }) => logged).length, 3);
    for (const id of ids) assert.equal((await keptOf(state, withId(id)))?.step, 'in-doubt');
  });

  test('is in doubt when operators ask, before anybody has looked around', async (t) => {
    const { clocks, state, instance } = start(t);
    await sendBy(instance, 'first');
    clocks.spend(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('but had only claimed is not', async (t) => {
    const { clocks, state, instance } = start(t);
    await instance.claim(withId('first'));
    clocks.spend(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), []);
  });

  test('is in doubt at once when the instance has said that it leaves', async (t) => {
    const { state, instance } = start(t);
    await sendBy(instance, 'first');
    await instance.lasting.leave();
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('is not put in doubt if it is answered in between', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await sendBy(instance, 'first');
    clocks.spend(leaseMs);
    const way = beforeNext(state, 'replace', () => claim.answered(answer(201)));
    assert.deepEqual(await listedBy(instanceOn(way)), []);
    assert.equal((await keptOf(state, withId('first')))?.step, 'answered');
  });
});

describe('the index', () => {
  test('loses what is closed when somebody looks around, however it came to stay', async (t) => {
    const { state, instance } = start(t);
    const claim = await sendBy(instance, 'first');
    const names = await instance.lasting.open.names();
    await claim.answered(answer(201));
    for (const name of names) await instance.lasting.open.add(name);
    assert.equal(await instanceOn(state).lasting.doubts.lookAround(), 0);
    assert.deepEqual(await instance.lasting.open.names(), []);
  });

  test('keeps what is opened again by another attempt while the first is dropped', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await sendBy(instance, 'first');
    const [name = ''] = await instance.lasting.open.names();
    await claim.release();
    await instance.lasting.open.add(name);
    clocks.spend(1);
    const way = beforeNext(state, 'remove', async () => void (await sendBy(instance, 'first')));
    await instanceOn(way).lasting.doubts.lookAround();
    clocks.spend(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('keeps the next attempt when the first one leaves it late', async (t) => {
    const clocks = stopped(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    const claim = await sendBy(instance, 'first');
    state.fail('remove');
    await claim.release();
    state.heal();
    clocks.spend(1);
    await sendBy(instance, 'first');
    await instance.lasting.owed.settle();
    clocks.spend(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('keeps what nobody can read, and passes over it', async (t) => {
    const { clocks, state, instance } = start(t);
    for (const id of ids) await sendBy(instance, id);
    await state.keyValues.write(`ledger:entry:${identityOf(withId('second')).id}`, 'garbage');
    clocks.spend(leaseMs);
    const other = instanceOn(state);
    assert.deepEqual((await listedBy(other)).toSorted(), ['first', 'third']);
    assert.equal((await other.lasting.open.names()).length, 3);
  });

  test('bears names that nothing stands behind, and no names at all', async (t) => {
    const { state, instance } = start(t);
    await (await sendBy(instance, 'first')).doubt('no answer');
    for (const garbage of ['A', 'B.C', 'D.E.F', '-.', 'G.__proto__'])
      await state.sets.add(`ledger:open:${garbage[0]}`, garbage);
    assert.deepEqual(await listedBy(instance), ['first']);
    assert.equal((await instance.lasting.open.names()).length, 1);
  });
});

describe('looking around', () => {
  test('reads a doubt once, not every time', async (t) => {
    stopped(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await (await sendBy(instance, 'first')).doubt('no answer');
    const reads = () => state.asked.filter((one) => one.startsWith('read')).length;
    assert.equal(await instance.lasting.doubts.lookAround(), 1);
    const before = reads();
    assert.equal(await instance.lasting.doubts.lookAround(), 1);
    assert.equal(reads(), before);
  });

  test('counts a doubt no longer when it is resolved elsewhere, and finds the next one under the same id', async (t) => {
    const { clocks, state, instance } = start(t);
    await (await sendBy(instance, 'first')).doubt('no answer');
    const other = instanceOn(state);
    assert.equal(await other.lasting.doubts.lookAround(), 1);
    clocks.spend(lateAnswerMs + 20_000);
    const { id } = await doubtOf(state, withId('first'));
    await instance.resolve({ id, who: 'an operator', outcome: 'did-not-happen', reason: 'so says the bank' });
    clocks.spend(1);
    await sendBy(instanceOn(state), 'first');
    clocks.spend(leaseMs);
    assert.equal(await other.lasting.doubts.lookAround(), 1);
    assert.equal(other.logged.length, 1, 'it is a new one');
    await doubtOf(state, withId('first'));
  });

  test('fails when the state does', async (t) => {
    stopped(t);
    const state = createFailingState();
    const { lasting } = instanceOn(state);
    state.fail('members');
    assert.equal(await codeOf(lasting.doubts.lookAround()), 'STATE_UNAVAILABLE');
    assert.equal(await codeOf(lasting.doubts.all()), 'STATE_UNAVAILABLE');
  });

  test('is done at the first beat of an instance and at every fifth after it, and tells how many there are', async (t) => {
    const { state, instance } = start(t);
    await (await sendBy(instance, 'first')).doubt('no answer');
    const other = instanceOn(state);
    const counts: (number | undefined)[] = [];
    for (let beat = 1; beat <= 6; beat++) {
      await other.lasting.tidy();
      counts.push(other.doubts());
      if (beat === 1) await (await sendBy(instance, 'second')).doubt('no answer');
    }
    assert.deepEqual(counts, [1, 1, 1, 1, 1, 2]);
  });
});

/** A way to a state on which something else happens just before the next operation of this kind. */
function beforeNext(state: State, operation: 'replace' | 'remove', happen: () => Promise<void>): State {
  let hasHappened = false;
  const once = async () => {
    if (hasHappened) return;
    hasHappened = true;
    await happen();
  };
  const { keyValues, sets } = state;
  if (operation === 'remove')
    return { ...state, sets: { ...sets, remove: async (...all) => once().then(() => sets.remove(...all)) } };
  return {
    ...state,
    keyValues: { ...keyValues, replace: async (...all) => once().then(() => keyValues.replace(...all)) },
  };
}
