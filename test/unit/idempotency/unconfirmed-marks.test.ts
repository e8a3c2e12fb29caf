/** The replicas of the state do not confirm the write-ahead mark: nothing is sent, and nothing is in doubt. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMemoryState } from '../../../src/state/memory.ts';
import { type State, UnconfirmedError } from '../../../src/state/ports.ts';
import { bankResponse, createInstance, entryOf, errorCodeOf, storedOf, useFakeTime } from './instance.ts';
import { identityOf, initiation } from './requests.ts';

/** A state whose master accepts confirmed writes while no replica does. */
function createUnreplicatedState() {
  const shared = createMemoryState();
  const replication = { isCut: true };
  const state: State = {
    ...shared,
    keyValues: {
      ...shared.keyValues,
      async replace(key, expected, value, ttlMs, { fence, confirmedBy } = {}) {
        const isReplaced = await shared.keyValues.replace(key, expected, value, ttlMs, { fence });
        if (confirmedBy && replication.isCut) throw new UnconfirmedError(0, 1);
        return isReplaced;
      },
    },
  };
  return { state, replication };
}

const entryKeyOf = (request = initiation()) => `ledger:entry:${identityOf(request).id}`;

describe('a payment whose mark the replicas do not confirm', () => {
  test('is refused, counted and released, and a repeat is executed', async (t) => {
    useFakeTime(t);
    const { state, replication } = createUnreplicatedState();
    const instance = createInstance(state);
    let sent = 0;
    const send = () =>
      instance.send(initiation(), async ({ writeAheadMark }) => {
        await writeAheadMark?.markSending('sandbox');
        sent += 1;
        return bankResponse(201);
      });
    assert.equal(await errorCodeOf(send()), 'STATE_UNAVAILABLE');
    assert.equal(sent, 0);
    assert.equal(await entryOf(state), undefined);
    assert.deepEqual(instance.logged, ['metric: penstock_unconfirmed_marks_total']);

    replication.isCut = false;
    assert.equal((await send()).status, 201);
    assert.equal(sent, 1);
  });

  test('is released again by its instance if a failover loses the release and keeps the mark', async (t) => {
    const time = useFakeTime(t);
    const { state } = createUnreplicatedState();
    const [instance, other] = [createInstance(state), createInstance(state)];
    const claim = await instance.claim();
    await assert.rejects(async () => claim.markSending('sandbox'), UnconfirmedError);
    const marked = (await storedOf(state))?.raw ?? assert.fail('there is no mark');
    await claim.release();
    for (const { services } of [instance, other]) await services.inDoubt.scan(); // the index forgets the attempt

    await state.keyValues.write(entryKeyOf(), marked);
    time.skip(1_000);
    assert.equal((await other.lookUp()).kind, 'running');
    for (const { services } of [other, instance]) assert.equal(await services.inDoubt.scan(), 0);
    assert.equal(await entryOf(state), undefined);
    assert.equal((await other.lookUp()).kind, 'claimed');
  });

  test('is not released again while it is sent because ifStateFails is allow', async (t) => {
    useFakeTime(t);
    const { state } = createUnreplicatedState();
    const instance = createInstance(state, { idempotency: { ifStateFails: 'allow' } });
    const response = await instance.send(initiation(), async ({ writeAheadMark }) => {
      await writeAheadMark?.markSending('sandbox');
      await instance.services.inDoubt.scan();
      assert.equal((await entryOf(state))?.step, 'sending');
      return bankResponse(201);
    });
    assert.equal(response.status, 201);
    assert.equal((await entryOf(state))?.step, 'answered');
  });
});

describe('a payment that the bank refused with 429', () => {
  test('is released again if a failover loses the release', async (t) => {
    useFakeTime(t);
    const state = createMemoryState();
    const instance = createInstance(state);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    const marked = (await storedOf(state))?.raw ?? assert.fail('there is no mark');
    await claim.release();
    await state.keyValues.write(entryKeyOf(), marked);
    assert.equal(await instance.services.inDoubt.scan(), 0);
    assert.equal(await entryOf(state), undefined);
  });
});
