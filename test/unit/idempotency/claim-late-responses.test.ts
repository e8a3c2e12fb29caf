/** What an instance has heard of the bank is kept, however late the state takes it. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Claim } from '../../../src/idempotency/claim.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { KeyValues } from '../../../src/state/ports.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  entryOf,
  inDoubtWriteOf,
  instanceOn,
  lateAnswerMs,
  startInstance,
  useFakeTime,
} from './instance.ts';

describe('an answer that the state does not take', () => {
  for (const [what, end] of [
    ['an answer', (claim) => claim.recordResponse(bankResponse(201))],
    ['a refusal for too many requests', (claim) => claim.release()],
  ] as const satisfies readonly (readonly [string, (claim: Claim) => Promise<void>])[])
    test(`is told later, though the deadline passes in between: ${what}`, async (t) => {
      useFakeTime(t);
      const state = createFailingState();
      const instance = instanceOn(state);
      const claim = await instance.claim();
      await claim.markSending('sandbox');
      state.fail();
      await end(claim);
      await claim.markInDoubt('the deadline has passed');
      state.recover();
      await instance.services.pendingWrites.flush();
      assert.notEqual((await entryOf(state))?.step, 'in-doubt');
      assert.notEqual((await entryOf(state))?.step, 'sending');
    });

  test('stays in the index until it has taken it: whoever dies meanwhile leaves a doubt', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    state.fail('replace', 'read');
    await claim.recordResponse(bankResponse(201));
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);

    state.recover();
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(state))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });
});

test('an answer and the doubt at the deadline that cross on their way leave the answer', async (t) => {
  useFakeTime(t);
  for (const first of ['answer', 'doubt'] as const) {
    const way = createBlockingState();
    const claim = await instanceOn(way).claim();
    await claim.markSending('sandbox');
    const tell = way.block('replace');
    const acts = {
      answer: () => claim.recordResponse(bankResponse(201)),
      doubt: () => claim.markInDoubt('no answer'),
    };
    const both = first === 'answer' ? [acts.answer(), acts.doubt()] : [acts.doubt(), acts.answer()];
    tell();
    await Promise.all(both);
    assert.equal((await entryOf(way))?.step, 'answered', `${first} first`);
  }
});

test('an answer that overtakes the doubt at the deadline on the way to the state stands', async (t) => {
  useFakeTime(t);
  const shared = createMemoryState();
  const { keyValues } = shared;
  const { promise: turn, resolve: itIsTheTurn } = Promise.withResolvers<void>();
  let turns: readonly Promise<void>[] = [];
  const replace: KeyValues['replace'] = async (...all) => {
    const [own, ...others] = turns;
    turns = others;
    await own;
    return keyValues.replace(...all);
  };
  const claim = await instanceOn({ ...shared, keyValues: { ...keyValues, replace } }).claim();
  await claim.markSending('sandbox');
  turns = [turn];
  const doubt = claim.markInDoubt('no answer');
  await claim.recordResponse(bankResponse(201));
  itIsTheTurn();
  await doubt;
  assert.equal((await entryOf(shared))?.step, 'answered');
});

describe('an answer that comes after operators have resolved the doubt', () => {
  type Outcome = 'happened' | 'did-not-happen';

  /** A claim that they have resolved. */
  async function resolvedAs(t: TestContext, outcome: Outcome) {
    const { clocks, state } = startInstance(t);
    const way = createBlockingState(state);
    const instance = instanceOn(way);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('no answer');
    clocks.skip(lateAnswerMs + 20_000);
    const { id } = await inDoubtWriteOf(state);
    await instance.resolve({ id, who: 'an operator', outcome, reason: 'so says the bank' });
    return { state, way, instance, claim };
  }

  async function answeredAfter(t: TestContext, outcome: Outcome) {
    const { state, instance, claim } = await resolvedAs(t, outcome);
    const before = await entryOf(state);
    await claim.recordResponse(bankResponse(201));
    return { before, after: await entryOf(state), told: instance.logged.at(-1) };
  }

  test('is told at error level, and changes nothing: it happened', async (t) => {
    const { before, after, told } = await answeredAfter(t, 'happened');
    assert.deepEqual(after, before);
    assert.equal(told, 'error: the bank has answered what had been resolved otherwise');
  });

  test('is told at error level, and kept if nothing was sent since: it did-not-happen', async (t) => {
    const { after, told } = await answeredAfter(t, 'did-not-happen');
    assert.equal(after?.step, 'answered');
    assert.match(told ?? '', /^error: what was known of a payment was gone, lost or resolved otherwise/);
  });

  test('is told at error level if a repeat was sent before it could be kept', async (t) => {
    const { state, way, instance, claim } = await resolvedAs(t, 'did-not-happen');
    const goOn = way.block('read');
    const told = claim.recordResponse(bankResponse(201));
    await (await instanceOn(state).claim()).markSending('sandbox');
    const before = await entryOf(state);
    goOn();
    await told;
    assert.deepEqual(await entryOf(state), before);
    assert.equal(instance.logged.at(-1), 'error: the bank has answered what had been resolved otherwise');
  });

  test('is not told if it says that nothing was done, as they had said', async (t) => {
    const { instance, claim } = await resolvedAs(t, 'did-not-happen');
    await claim.release();
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });
});
