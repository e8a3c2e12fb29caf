/** The state is out of reach: nothing is sent, or what the configuration allows, loudly. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayError } from '../../../src/request/errors.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { type FakeTime, settleTasks } from './fake-time.ts';
import { bankResponse, createInstance, entryOf, errorCodeOf, instanceOn, useFakeTime } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { initiation } from './requests.ts';

const loudly =
  'warn: a payment goes on without protection from duplicates, as idempotency.ifStateFails allows';

const allowed = () => {
  const state = createFailingState();
  return { state, instance: createInstance(state, { idempotency: { ifStateFails: 'allow' } }) };
};

describe('without the state', () => {
  for (const operations of [['write'], ['writeIfAbsent'], ['replace'], ['add']] as const)
    test(`to ${operations} to, nothing is sent, and what was claimed is free afterwards`, async (t) => {
      const clocks = useFakeTime(t);
      const state = createFailingState();
      const instance = instanceOn(state);
      const behind = createNextStage();
      state.fail(...operations);
      assert.equal(await errorCodeOf(instance.send(initiation(), behind.next)), 'STATE_UNAVAILABLE');
      assert.equal(behind.sentCount(), 0);
      state.recover();
      await instance.services.pendingWrites.flush();
      clocks.skip(1);
      assert.equal(await entryOf(state), undefined);
      behind.respond(bankResponse(201));
      await instance.send(initiation(), behind.next);
      assert.equal(behind.sentCount(), 1);
    });

  test('on the way back, the TPP gets the answer, and a repeat is told that it runs until the state has it', async (t) => {
    const clocks = useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    const behind = createNextStage();
    const first = instance.send(initiation(), behind.next);
    await settleTasks();
    state.fail();
    behind.respond(bankResponse(201));
    assert.equal((await first).status, 201);
    state.recover();
    assert.equal(
      await repeatedAfterWaiting(clocks, instance.send(initiation(), behind.next)),
      'DUPLICATE_IN_FLIGHT',
    );
    await instance.services.maintain();
    assert.equal((await instance.send(initiation(), behind.next)).servedFrom, 'ledger');
    assert.equal(behind.sentCount(), 1);
  });
});

describe('without the state, where the configuration allows it', () => {
  test('a payment is sent without protection, and the log says so every time', async (t) => {
    useFakeTime(t);
    const { state, instance } = allowed();
    const behind = createNextStage();
    behind.respond(bankResponse(201));
    state.fail();
    for (let payment = 0; payment < 2; payment++)
      assert.equal((await instance.send(initiation(), behind.next)).status, 201);
    assert.equal(behind.sentCount(), 2);
    assert.equal(behind.requests[0]?.writeAheadMark, undefined);
    assert.deepEqual(instance.logged, [loudly, loudly]);
  });

  test('a payment goes on that was claimed before, and its answer is recorded when the state is back', async (t) => {
    useFakeTime(t);
    const { state, instance } = allowed();
    const behind = createNextStage();
    behind.respond(bankResponse(201));
    state.fail('replace', 'add');
    assert.equal((await instance.send(initiation(), behind.next)).status, 201);
    assert.deepEqual(instance.logged, [loudly]);
    state.recover();
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  test('a payment that went on so and is in doubt is listed as any other', async (t) => {
    useFakeTime(t);
    const { state, instance } = allowed();
    const behind = createNextStage();
    behind.fail(new Error('it broke'));
    state.fail('replace', 'add');
    await assert.rejects(instance.send(initiation(), behind.next));
    state.recover();
    await instance.services.pendingWrites.flush();
    assert.equal((await instance.services.inDoubt.all()).length, 1);
  });

  test('a payment does not go on that another instance has taken over', async (t) => {
    const clocks = useFakeTime(t);
    const { state, instance } = allowed();
    const behind = createNextStage();
    const { promise: turn, resolve: itIsTheTurn } = Promise.withResolvers<void>();
    const first = instance.send(initiation(), (request) => turn.then(() => behind.next(request)));
    await settleTasks();
    clocks.skip(6_000);
    await instanceOn(state).claim();
    itIsTheTurn();
    assert.equal(await errorCodeOf(first), 'DUPLICATE_IN_FLIGHT');
    assert.equal(behind.sentCount(), 0);
  });

  for (const operations of [['read'], []] as const)
    test(`a repeat of what is known to run is not sent${operations[0] ? ' though only reading fails' : ''}`, async (t) => {
      const clocks = useFakeTime(t);
      const { state, instance } = allowed();
      const behind = createNextStage();
      void instance.send(initiation(), behind.next);
      await settleTasks();
      if (operations[0]) state.fail(...operations);
      const repeat = instance.send(initiation(), behind.next);
      await settleTasks();
      if (!operations[0]) state.fail();
      const expected = operations[0] ? 'DUPLICATE_IN_FLIGHT' : 'STATE_UNAVAILABLE';
      assert.equal(await repeatedAfterWaiting(clocks, repeat), expected);
      assert.equal(behind.sentCount(), 1);
    });
});

/** The code that a repeat is told when it has waited long enough. */
async function repeatedAfterWaiting(clocks: FakeTime, repeat: Promise<unknown>): Promise<string | undefined> {
  let code: string | undefined;
  repeat.catch((error: GatewayError) => {
    code = error.code;
  });
  await settleTasks();
  await clocks.advance(3_000);
  return code;
}
