/** The state is out of reach: nothing is sent, or what the configuration allows, loudly. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayError } from '../../../src/flow/errors.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createInstance } from './instance.ts';
import { answer, codeOf, instanceOn, keptOf, stopped } from './ledger.ts';
import { createBehind } from './line.ts';
import { initiation } from './requests.ts';
import { quiet, type StoppedClocks } from './stopped-clocks.ts';

const loudly =
  'warn: a payment goes on without protection from duplicates, as idempotency.ifStateFails allows';

const allowed = () => {
  const state = createFailingState();
  return { state, instance: createInstance(state, { idempotency: { ifStateFails: 'allow' } }) };
};

describe('without the state', () => {
  for (const operations of [['write'], ['writeIfAbsent'], ['replace'], ['add']] as const)
    test(`to ${operations} to, nothing is sent, and what was claimed is free afterwards`, async (t) => {
      const clocks = stopped(t);
      const state = createFailingState();
      const instance = instanceOn(state);
      const behind = createBehind();
      state.fail(...operations);
      assert.equal(await codeOf(instance.ask(initiation(), behind.next)), 'STATE_UNAVAILABLE');
      assert.equal(behind.sent(), 0);
      state.heal();
      await instance.lasting.owed.settle();
      clocks.spend(1);
      assert.equal(await keptOf(state), undefined);
      behind.answer(answer(201));
      await instance.ask(initiation(), behind.next);
      assert.equal(behind.sent(), 1);
    });

  test('on the way back, the TPP gets the answer, and a repeat is told that it runs until the state has it', async (t) => {
    const clocks = stopped(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    const behind = createBehind();
    const first = instance.ask(initiation(), behind.next);
    await quiet();
    state.fail();
    behind.answer(answer(201));
    assert.equal((await first).status, 201);
    state.heal();
    assert.equal(
      await repeatedAfterWaiting(clocks, instance.ask(initiation(), behind.next)),
      'DUPLICATE_IN_FLIGHT',
    );
    await instance.lasting.tidy();
    assert.equal((await instance.ask(initiation(), behind.next)).servedFrom, 'ledger');
    assert.equal(behind.sent(), 1);
  });
});

describe('without the state, where the configuration allows it', () => {
  test('a payment is sent without protection, and the log says so every time', async (t) => {
    stopped(t);
    const { state, instance } = allowed();
    const behind = createBehind();
    behind.answer(answer(201));
    state.fail();
    for (let payment = 0; payment < 2; payment++)
      assert.equal((await instance.ask(initiation(), behind.next)).status, 201);
    assert.equal(behind.sent(), 2);
    assert.equal(behind.requests[0]?.fence, undefined);
    assert.deepEqual(instance.logged, [loudly, loudly]);
  });

  test('a payment goes on that was claimed before, and its answer is recorded when the state is back', async (t) => {
    stopped(t);
    const { state, instance } = allowed();
    const behind = createBehind();
    behind.answer(answer(201));
    state.fail('replace', 'add');
    assert.equal((await instance.ask(initiation(), behind.next)).status, 201);
    assert.deepEqual(instance.logged, [loudly]);
    state.heal();
    await instance.lasting.owed.settle();
    assert.equal((await keptOf(state))?.step, 'answered');
  });

  test('a payment that went on so and is in doubt is listed as any other', async (t) => {
    stopped(t);
    const { state, instance } = allowed();
    const behind = createBehind();
    behind.fail(new Error('it broke'));
    state.fail('replace', 'add');
    await assert.rejects(instance.ask(initiation(), behind.next));
    state.heal();
    await instance.lasting.owed.settle();
    assert.equal((await instance.lasting.doubts.all()).length, 1);
  });

  test('a payment does not go on that another instance has taken over', async (t) => {
    const clocks = stopped(t);
    const { state, instance } = allowed();
    const behind = createBehind();
    const { promise: turn, resolve: itIsTheTurn } = Promise.withResolvers<void>();
    const first = instance.ask(initiation(), (request) => turn.then(() => behind.next(request)));
    await quiet();
    clocks.spend(6_000);
    await instanceOn(state).claim();
    itIsTheTurn();
    assert.equal(await codeOf(first), 'DUPLICATE_IN_FLIGHT');
    assert.equal(behind.sent(), 0);
  });

  for (const operations of [['read'], []] as const)
    test(`a repeat of what is known to run is not sent${operations[0] ? ' though only reading fails' : ''}`, async (t) => {
      const clocks = stopped(t);
      const { state, instance } = allowed();
      const behind = createBehind();
      void instance.ask(initiation(), behind.next);
      await quiet();
      if (operations[0]) state.fail(...operations);
      const repeat = instance.ask(initiation(), behind.next);
      await quiet();
      if (!operations[0]) state.fail();
      const expected = operations[0] ? 'DUPLICATE_IN_FLIGHT' : 'STATE_UNAVAILABLE';
      assert.equal(await repeatedAfterWaiting(clocks, repeat), expected);
      assert.equal(behind.sent(), 1);
    });
});

/** The code that a repeat is told when it has waited long enough. */
async function repeatedAfterWaiting(
  clocks: StoppedClocks,
  repeat: Promise<unknown>,
): Promise<string | undefined> {
  let code: string | undefined;
  repeat.catch((error: GatewayError) => {
    code = error.code;
  });
  await quiet();
  await clocks.pass(3_000);
  return code;
}
