import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInstanceLeases } from '../../../src/idempotency/recovery.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  createInstance,
  entryOf,
  errorCodeOf,
  type Instance,
  inDoubtWriteOf,
  lateAnswerMs,
  leaseMs,
  startInstance,
  useFakeTime,
} from './instance.ts';
import { identityOf, initiation } from './requests.ts';

const ids = ['first', 'second', 'third'] as const;
const withId = (requestId: string) => initiation({ requestId });

/** Sends a request that gets no response. */
async function sendBy(instance: Instance, requestId: string) {
  const claim = await instance.claim(withId(requestId));
  await claim.markSending('sandbox');
  return claim;
}

const listedBy = async ({ services }: Instance) =>
  (await services.inDoubt.all()).map(({ entry }) => entry.requestId);

describe('the list of writes in doubt', () => {
  test('is the same on every instance, oldest first', async (t) => {
    const { time, state, instance } = startInstance(t);
    for (const id of ids) {
      await (await sendBy(instance, id)).markInDoubt('no answer');
      time.skip(10);
    }
    assert.deepEqual(await listedBy(instance), ids);
    assert.deepEqual(await listedBy(createInstance(state)), ids);
  });

  test('does not contain running, answered or released writes', async (t) => {
    const { time, instance } = startInstance(t);
    const [first, second, third] = [
      await sendBy(instance, 'first'),
      await sendBy(instance, 'second'),
      await sendBy(instance, 'third'),
    ];
    await second.recordResponse(bankResponse(400));
    await third.release();
    time.skip(leaseMs);
    assert.deepEqual(await listedBy(instance), []);
    await first.recordResponse(bankResponse(502));
    assert.deepEqual(await listedBy(instance), ['first']);
  });
});

describe('a write that a dead instance was sending', () => {
  test('is put in doubt by a scan of any instance, and logged once', async (t) => {
    const { time, state, instance } = startInstance(t);
    for (const id of ids) await sendBy(instance, id);
    const others = [createInstance(state), createInstance(state)];
    time.skip(leaseMs - 1);
    assert.equal(await others[0]?.services.inDoubt.scan(), 0);
    time.skip(1);
    const counts = await Promise.all(others.map(({ services }) => services.inDoubt.scan()));
    assert.deepEqual(counts, [3, 3]);
    assert.equal(others.flatMap(({ logged }) => logged).length, 3);
    for (const id of ids) assert.equal((await entryOf(state, withId(id)))?.step, 'in-doubt');
  });

  test('is listed before the first scan', async (t) => {
    const { time, state, instance } = startInstance(t);
    await sendBy(instance, 'first');
    time.skip(leaseMs);
    assert.deepEqual(await listedBy(createInstance(state)), ['first']);
  });

  test('is not in doubt if it was only claimed', async (t) => {
    const { time, state, instance } = startInstance(t);
    await instance.claim(withId('first'));
    time.skip(leaseMs);
    assert.deepEqual(await listedBy(createInstance(state)), []);
  });

  test('is in doubt at once after the instance deregistered', async (t) => {
    const { state, instance } = startInstance(t);
    await sendBy(instance, 'first');
    await instance.services.deregister();
    assert.deepEqual(await listedBy(createInstance(state)), ['first']);
  });

  test('is not put in doubt if it is answered during the scan', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await sendBy(instance, 'first');
    time.skip(leaseMs);
    const connection = beforeNext(state, 'replace', () => claim.recordResponse(bankResponse(201)));
    assert.deepEqual(await listedBy(createInstance(connection)), []);
    assert.equal((await entryOf(state, withId('first')))?.step, 'answered');
  });
});

describe('the index of unresolved writes', () => {
  test('loses a stale name in the next scan', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await sendBy(instance, 'first');
    const names = await instance.services.unresolvedIndex.list();
    await claim.recordResponse(bankResponse(201));
    for (const name of names) await instance.services.unresolvedIndex.add(name);
    assert.equal(await createInstance(state).services.inDoubt.scan(), 0);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('keeps the name of a new attempt while a scan removes the previous one', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await sendBy(instance, 'first');
    const [name = ''] = await instance.services.unresolvedIndex.list();
    await claim.release();
    await instance.services.unresolvedIndex.add(name);
    time.skip(1);
    const connection = beforeNext(state, 'remove', async () => void (await sendBy(instance, 'first')));
    await createInstance(connection).services.inDoubt.scan();
    time.skip(leaseMs);
    assert.deepEqual(await listedBy(createInstance(state)), ['first']);
  });

  test('keeps the name of a new attempt when the previous name is removed late', async (t) => {
    const time = useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    const claim = await sendBy(instance, 'first');
    state.fail('remove');
    await claim.release();
    state.recover();
    time.skip(1);
    await sendBy(instance, 'first');
    await instance.services.pendingWrites.flush();
    time.skip(leaseMs);
    assert.deepEqual(await listedBy(createInstance(state)), ['first']);
  });

  test('keeps an unreadable entry, which a scan skips and logs once', async (t) => {
    const { time, state, instance } = startInstance(t);
    for (const id of ids) await sendBy(instance, id);
    await state.keyValues.write(`ledger:entry:${identityOf(withId('second')).id}`, 'garbage');
    time.skip(leaseMs);
    const other = createInstance(state);
    assert.deepEqual((await listedBy(other)).toSorted(), ['first', 'third']);
    assert.equal((await other.services.unresolvedIndex.list()).length, 3);
    await listedBy(other);
    const lines = other.logged.filter((line) => line === 'error: unreadable ledger entry');
    assert.equal(lines.length, 1);
  });

  test('loses malformed names and names without an entry', async (t) => {
    const { state, instance } = startInstance(t);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    for (const garbage of ['A', 'B.C', 'D.E.F', '-.', 'G.__proto__'])
      await state.sets.add(`ledger:open:${garbage[0]}`, garbage);
    assert.deepEqual(await listedBy(instance), ['first']);
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
  });
});

describe('a scan for writes in doubt', () => {
  test('does not read a known write in doubt again', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    const reads = () => state.operations.filter((one) => one.startsWith('read')).length;
    assert.equal(await instance.services.inDoubt.scan(), 1);
    const before = reads();
    assert.equal(await instance.services.inDoubt.scan(), 1);
    assert.equal(reads(), before);
  });

  test('drops a write that another instance resolved, and finds the next one with the same X-Request-ID', async (t) => {
    const { time, state, instance } = startInstance(t);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    const other = createInstance(state);
    assert.equal(await other.services.inDoubt.scan(), 1);
    time.skip(lateAnswerMs + 20_000);
    const { id } = await inDoubtWriteOf(state, withId('first'));
    await instance.resolve({ id, who: 'an operator', outcome: 'did-not-happen', reason: 'the bank said so' });
    time.skip(1);
    await sendBy(createInstance(state), 'first');
    time.skip(leaseMs);
    assert.equal(await other.services.inDoubt.scan(), 1);
    assert.equal(other.logged.length, 1, 'the new write is logged');
    assert.notEqual((await inDoubtWriteOf(state, withId('first'))).id, id);
  });

  test('fails if the state is unavailable', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const { services } = createInstance(state);
    state.fail('members');
    assert.equal(await errorCodeOf(services.inDoubt.scan()), 'STATE_UNAVAILABLE');
    assert.equal(await errorCodeOf(services.inDoubt.all()), 'STATE_UNAVAILABLE');
  });

  test('runs on the first and every fifth call of maintain, and reports the number of writes in doubt', async (t) => {
    const { state, instance } = startInstance(t);
    await (await sendBy(instance, 'first')).markInDoubt('no answer');
    const other = createInstance(state);
    const counts: (number | undefined)[] = [];
    for (let call = 1; call <= 6; call++) {
      await other.services.maintain();
      counts.push(other.inDoubtCount());
      if (call === 1) await (await sendBy(instance, 'second')).markInDoubt('no answer');
    }
    assert.deepEqual(counts, [1, 1, 1, 1, 1, 2]);
  });
});

/** A connection to the state that runs `act` just before its next operation of this kind. */
function beforeNext(state: State, operation: 'replace' | 'remove', act: () => Promise<void>): State {
  let hasActed = false;
  const once = async () => {
    if (hasActed) return;
    hasActed = true;
    await act();
  };
  const { keyValues, sets } = state;
  if (operation === 'remove')
    return { ...state, sets: { ...sets, remove: async (...all) => once().then(() => sets.remove(...all)) } };
  return {
    ...state,
    keyValues: { ...keyValues, replace: async (...all) => once().then(() => keyValues.replace(...all)) },
  };
}

function createTwo() {
  const state = createFailingState();
  return {
    state,
    one: createInstanceLeases(state.keyValues, state.sets),
    other: createInstanceLeases(state.keyValues, state.sets),
  };
}

describe('an instance lease', () => {
  test('makes the instance count as alive from registration until it expires', async (t) => {
    const time = useFakeTime(t);
    const { one, other } = createTwo();
    assert.equal(await other.isAlive(one.ownId), false);
    await one.renew();
    time.skip(leaseMs - 1);
    assert.equal(await other.isAlive(one.ownId), true);
    time.skip(1);
    assert.equal(await other.isAlive(one.ownId), false);
  });

  test('does not expire while it is renewed', async (t) => {
    const time = useFakeTime(t);
    const { one, other } = createTwo();
    for (let renewal = 0; renewal < 20; renewal++) {
      await one.renew();
      time.skip(leaseMs - 1);
      assert.equal(await other.isAlive(one.ownId), true);
    }
  });

  test('shows its last value to other instances', async (t) => {
    useFakeTime(t);
    const { one, other } = createTwo();
    await one.renew('round 1');
    await other.renew();
    await one.renew();
    assert.deepEqual(
      await other.live(),
      new Map([
        [one.ownId, 'round 1'],
        [other.ownId, 'starting'],
      ]),
    );
  });

  test('is renewed after the state was unavailable', async (t) => {
    useFakeTime(t);
    const { state, one, other } = createTwo();
    state.fail();
    await assert.rejects(one.renew(), { code: 'STATE_UNAVAILABLE' });
    state.recover();
    await one.renew();
    assert.equal(await other.isAlive(one.ownId), true);
  });

  test('ends for other instances when the instance deregisters', async (t) => {
    useFakeTime(t);
    const { one, other } = createTwo();
    await one.renew();
    await one.deregister();
    assert.equal(await other.isAlive(one.ownId), false);
    assert.equal(await one.isAlive(one.ownId), true, 'the instance itself is still alive');
  });

  test('is counted by every instance while it is alive', async (t) => {
    const time = useFakeTime(t);
    const { one, other } = createTwo();
    assert.equal(await one.countLive(), 1, 'counts itself before it has registered');
    await Promise.all([one.renew(), other.renew()]);
    await one.countLive();
    assert.equal(await other.countLive(), 2);
    time.skip(leaseMs);
    assert.equal(await other.countLive(), 1, 'the dead instance is not counted');
    await one.renew();
    assert.equal(await one.countLive(), 1, 'the other instance has expired as well');
    await other.renew();
    await other.countLive();
    assert.equal(await one.countLive(), 2, 'an instance that comes back is counted');
    await one.deregister();
    assert.equal(await other.countLive(), 1);
  });

  test('has a new id after a restart of the instance', () => {
    const { one, other } = createTwo();
    assert.notEqual(one.ownId, other.ownId);
  });
});
