import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInstanceLeases } from '../../../src/idempotency/recovery.ts';
import { identityOf } from '../../../src/idempotency/request-identity.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  instanceOn,
  type LedgerInstance,
  lateAnswerMs,
  leaseMs,
  startInstance,
  useFakeTime,
} from './instance.ts';
import { initiation } from './requests.ts';

const ids = ['first', 'second', 'third'] as const;
const withId = (requestId: string) => initiation({ requestId });

/** Has an instance send a request, and not hear of it again. */
async function sendBy(instance: LedgerInstance, requestId: string) {
  const claim = await instance.claim(withId(requestId));
  await claim.markSending('sandbox');
  return claim;
}

const listedBy = async ({ services }: LedgerInstance) =>
  (await services.inDoubt.all()).map(({ entry }) => entry.requestId);

describe('what is in doubt', () => {
  test('is listed by every instance, the oldest first', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    for (const id of ids) {
      await (await sendBy(instance, id)).markInDoubt('no answer');
      clocks.skip(10);
    }
    assert.deepEqual(await listedBy(instance), ids);
    assert.deepEqual(await listedBy(instanceOn(state)), ids);
  });

  test('does not hold what runs, was answered, or was given back', async (t) => {
    const { clocks, instance } = startInstance(t);
    const [first, second, third] = [
      await sendBy(instance, 'first'),
      await sendBy(instance, 'second'),
      await sendBy(instance, 'third'),
    ];
    await second.recordResponse(bankResponse(400));
    await third.release();
    clocks.skip(leaseMs);
    assert.deepEqual(await listedBy(instance), []);
    await first.recordResponse(bankResponse(502));
    assert.deepEqual(await listedBy(instance), ['first']);
  });
});

describe('what a dead instance was sending', () => {
  test('is in doubt when anybody looks around, and the log says so once', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    for (const id of ids) await sendBy(instance, id);
    const others = [instanceOn(state), instanceOn(state)];
    clocks.skip(leaseMs - 1);
    assert.equal(await others[0]?.services.inDoubt.scan(), 0);
    clocks.skip(1);
    const counts = await Promise.all(others.map(({ services }) => services.inDoubt.scan()));
    assert.deepEqual(counts, [3, 3]);
    assert.equal(others.flatMap(({ logged }) => logged).length, 3);
    for (const id of ids) assert.equal((await entryOf(state, withId(id)))?.step, 'in-doubt');
  });

  test('is in doubt when operators ask, before anybody has looked around', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await sendBy(instance, 'first');
    clocks.skip(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('but had only claimed is not', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await instance.claim(withId('first'));
    clocks.skip(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), []);
  });

  test('is in doubt at once when the instance has said that it leaves', async (t) => {
    const { state, instance } = startInstance(t);
    await sendBy(instance, 'first');
    await instance.services.deregister();
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('is not put in doubt if it is answered in between', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await sendBy(instance, 'first');
    clocks.skip(leaseMs);
    const way = beforeNext(state, 'replace', () => claim.recordResponse(bankResponse(201)));
    assert.deepEqual(await listedBy(instanceOn(way)), []);
    assert.equal((await entryOf(state, withId('first')))?.step, 'answered');
  });
});

describe('the index', () => {
  test('loses what is closed when somebody looks around, however it came to stay', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await sendBy(instance, 'first');
    const names = await instance.services.unresolvedIndex.list();
    await claim.recordResponse(bankResponse(201));
    for (const name of names) await instance.services.unresolvedIndex.add(name);
    assert.equal(await instanceOn(state).services.inDoubt.scan(), 0);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('keeps what is opened again by another attempt while the first is dropped', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await sendBy(instance, 'first');
    const [name = ''] = await instance.services.unresolvedIndex.list();
    await claim.release();
    await instance.services.unresolvedIndex.add(name);
    clocks.skip(1);
    const way = beforeNext(state, 'remove', async () => void (await sendBy(instance, 'first')));
    await instanceOn(way).services.inDoubt.scan();
    clocks.skip(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('keeps the next attempt when the first one leaves it late', async (t) => {
    const clocks = useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    const claim = await sendBy(instance, 'first');
    state.fail('remove');
    await claim.release();
    state.recover();
    clocks.skip(1);
    await sendBy(instance, 'first');
    await instance.services.pendingWrites.flush();
    clocks.skip(leaseMs);
    assert.deepEqual(await listedBy(instanceOn(state)), ['first']);
  });

  test('keeps what nobody can read, tells of it once, and passes over it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    for (const id of ids) await sendBy(instance, id);
    await state.keyValues.write(`ledger:entry:${identityOf(withId('second')).id}`, 'garbage');
    clocks.skip(leaseMs);
    const other = instanceOn(state);
    assert.deepEqual((await listedBy(other)).toSorted(), ['first', 'third']);
    assert.equal((await other.services.unresolvedIndex.list()).length, 3);
    await listedBy(other);
    const told = other.logged.filter((line) => line === 'error: an entry of the ledger cannot be read');
    assert.equal(told.length, 1, 'it is told of once');
  });

  test('bears names that nothing stands behind, and no names at all', async (t) => {
    const { state, instance } = startInstance(t);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    for (const garbage of ['A', 'B.C', 'D.E.F', '-.', 'G.__proto__'])
      await state.sets.add(`ledger:open:${garbage[0]}`, garbage);
    assert.deepEqual(await listedBy(instance), ['first']);
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
  });
});

describe('looking around', () => {
  test('reads a doubt once, not every time', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    const reads = () => state.operations.filter((one) => one.startsWith('read')).length;
    assert.equal(await instance.services.inDoubt.scan(), 1);
    const before = reads();
    assert.equal(await instance.services.inDoubt.scan(), 1);
    assert.equal(reads(), before);
  });

  test('counts a doubt no longer when it is resolved elsewhere, and finds the next one under the same id', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    const other = instanceOn(state);
    assert.equal(await other.services.inDoubt.scan(), 1);
    clocks.skip(lateAnswerMs + 20_000);
    const { id } = await inDoubtWriteOf(state, withId('first'));
    await instance.resolve({ id, who: 'an operator', outcome: 'did-not-happen', reason: 'so says the bank' });
    clocks.skip(1);
    await sendBy(instanceOn(state), 'first');
    clocks.skip(leaseMs);
    assert.equal(await other.services.inDoubt.scan(), 1);
    assert.equal(other.logged.length, 1, 'it is a new one');
    await inDoubtWriteOf(state, withId('first'));
  });

  test('fails when the state does', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const { services } = instanceOn(state);
    state.fail('members');
    assert.equal(await errorCodeOf(services.inDoubt.scan()), 'STATE_UNAVAILABLE');
    assert.equal(await errorCodeOf(services.inDoubt.all()), 'STATE_UNAVAILABLE');
  });

  test('is done at the first beat of an instance and at every fifth after it, and tells how many there are', async (t) => {
    const { state, instance } = startInstance(t);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    const other = instanceOn(state);
    const counts: (number | undefined)[] = [];
    for (let beat = 1; beat <= 6; beat++) {
      await other.services.maintain();
      counts.push(other.inDoubtCount());
      if (beat === 1) await (await sendBy(instance, 'second')).markInDoubt('no answer');
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

function two() {
  const state = createFailingState();
  return {
    state,
    one: createInstanceLeases(state.keyValues, state.sets),
    other: createInstanceLeases(state.keyValues, state.sets),
  };
}

describe('an instance', () => {
  test('counts as alive from when it has introduced itself until it has not been heard of for a lease', async (t) => {
    const clocks = useFakeTime(t);
    const { one, other } = two();
    assert.equal(await other.isAlive(one.ownId), false);
    await one.register();
    clocks.skip(leaseMs - 1);
    assert.equal(await other.isAlive(one.ownId), true);
    clocks.skip(1);
    assert.equal(await other.isAlive(one.ownId), false);
  });

  test('stays alive as long as it says so', async (t) => {
    const clocks = useFakeTime(t);
    const { one, other } = two();
    for (let beat = 0; beat < 20; beat++) {
      await one.renew();
      clocks.skip(leaseMs - 1);
      assert.equal(await other.isAlive(one.ownId), true);
    }
  });

  test('introduces itself once, however much it carries out', async (t) => {
    useFakeTime(t);
    const { state, one } = two();
    for (let request = 0; request < 3; request++) await one.register();
    assert.equal(state.operations.length, 1);
  });

  test('introduces itself again if the state did not take it', async (t) => {
    useFakeTime(t);
    const { state, one, other } = two();
    state.fail();
    await assert.rejects(one.register(), { code: 'STATE_UNAVAILABLE' });
    state.recover();
    await one.register();
    assert.equal(await other.isAlive(one.ownId), true);
  });

  test('is gone at once when it leaves, for the others', async (t) => {
    useFakeTime(t);
    const { one, other } = two();
    await one.register();
    await one.deregister();
    assert.equal(await other.isAlive(one.ownId), false);
    assert.equal(await one.isAlive(one.ownId), true, 'it is still there itself');
  });

  test('is counted, by itself and the others, while it is alive', async (t) => {
    const clocks = useFakeTime(t);
    const { one, other } = two();
    assert.equal(await one.countLive(), 1, 'itself, though nobody has heard of it');
    await Promise.all([one.renew(), other.renew()]);
    await one.countLive();
    assert.equal(await other.countLive(), 2);
    clocks.skip(leaseMs);
    assert.equal(await other.countLive(), 1, 'the dead one no longer');
    await one.renew();
    assert.equal(await one.countLive(), 1, 'nor those that have not been heard of');
    await other.renew();
    await other.countLive();
    assert.equal(await one.countLive(), 2, 'who comes back is counted again');
    await one.deregister();
    assert.equal(await other.countLive(), 1);
  });

  test('is another one after it was started again', () => {
    const { one, other } = two();
    assert.notEqual(one.ownId, other.ownId);
  });
});
