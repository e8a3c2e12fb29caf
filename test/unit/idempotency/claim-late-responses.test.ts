/** Outcomes that the state stores late, or in another order than they happened. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Claim } from '../../../src/idempotency/claim.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { KeyValues } from '../../../src/state/ports.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  createInstance,
  entryOf,
  inDoubtWriteOf,
  lateAnswerMs,
  startInstance,
  useFakeTime,
} from './instance.ts';

describe('an outcome that the state does not accept', () => {
  for (const [what, end] of [
    ['a response', (claim) => claim.recordResponse(bankResponse(201))],
    ['a release after status 429', (claim) => claim.release()],
  ] as const satisfies readonly (readonly [string, (claim: Claim) => Promise<void>])[])
    test(`is stored later and is not overwritten by the in-doubt mark at the deadline: ${what}`, async (t) => {
      useFakeTime(t);
      const state = createFailingState();
      const instance = createInstance(state);
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

  test('keeps the attempt in the index until the state accepts it, so that a crash leaves it in doubt', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
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

describe('a response that arrives at the deadline', () => {
  for (const first of ['response', 'in-doubt mark'] as const)
    test(`wins over the in-doubt mark when both are written at once, the ${first} first`, async (t) => {
      useFakeTime(t);
      const connection = createBlockingState();
      const claim = await createInstance(connection).claim();
      await claim.markSending('sandbox');
      const unblock = connection.block('replace');
      const write = {
        response: () => claim.recordResponse(bankResponse(201)),
        'in-doubt mark': () => claim.markInDoubt('no answer'),
      };
      const writes = [write[first](), write[first === 'response' ? 'in-doubt mark' : 'response']()];
      unblock();
      await Promise.all(writes);
      assert.equal((await entryOf(connection))?.step, 'answered');
    });

  test('wins over the in-doubt mark when it reaches the state first', async (t) => {
    useFakeTime(t);
    const shared = createMemoryState();
    const { keyValues } = shared;
    const delay = Promise.withResolvers<void>();
    let nextDelay: Promise<void> | undefined;
    const replace: KeyValues['replace'] = async (...all) => {
      const own = nextDelay;
      nextDelay = undefined;
      await own;
      return keyValues.replace(...all);
    };
    const claim = await createInstance({ ...shared, keyValues: { ...keyValues, replace } }).claim();
    await claim.markSending('sandbox');
    nextDelay = delay.promise;
    const marking = claim.markInDoubt('no answer');
    await claim.recordResponse(bankResponse(201));
    delay.resolve();
    await marking;
    assert.equal((await entryOf(shared))?.step, 'answered');
  });
});

describe('a response that arrives after an operator resolved the write', () => {
  type Outcome = 'happened' | 'did-not-happen';

  async function resolvedClaim(t: TestContext, outcome: Outcome) {
    const { time, state } = startInstance(t);
    const connection = createBlockingState(state);
    const instance = createInstance(connection);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('no answer');
    time.skip(lateAnswerMs + 20_000);
    const { id } = await inDoubtWriteOf(state);
    await instance.resolve({ id, who: 'an operator', outcome, reason: 'the bank said so' });
    return { state, connection, instance, claim };
  }

  async function respondAfter(t: TestContext, outcome: Outcome) {
    const { state, instance, claim } = await resolvedClaim(t, outcome);
    const before = await entryOf(state);
    await claim.recordResponse(bankResponse(201));
    return { before, after: await entryOf(state), logLine: instance.logged.at(-1) };
  }

  const contradiction =
    'error: the bank responded to a request that was already resolved with another outcome';

  test('is logged as an error and changes nothing if the outcome was happened', async (t) => {
    const { before, after, logLine } = await respondAfter(t, 'happened');
    assert.deepEqual(after, before);
    assert.equal(logLine, contradiction);
  });

  test('is logged as an error and stored if the outcome was did-not-happen and no repeat was sent', async (t) => {
    const { after, logLine } = await respondAfter(t, 'did-not-happen');
    assert.equal(after?.step, 'answered');
    assert.match(logLine ?? '', /^error: the ledger entry of a payment was lost or released/);
  });

  /** An answered attempt, and a repeat of it that was sent before the answer was recorded. */
  async function twoAttempts(t: TestContext) {
    const { state, connection, instance, claim } = await resolvedClaim(t, 'did-not-happen');
    const unblock = connection.block('read');
    const recorded = claim.recordResponse(bankResponse(201));
    const repeat = await createInstance(state).claim();
    await repeat.markSending('sandbox');
    unblock();
    await recorded;
    return { state, instance, repeat };
  }

  test('puts the repeat in doubt, with what is known of both attempts, if a repeat was sent before', async (t) => {
    const { state, instance, repeat } = await twoAttempts(t);
    const facts = /^two attempts reached the bank: .*its outcome is not known.*; .*the bank answered 201/;
    assert.match((await inDoubtWriteOf(state)).entry.why, facts);
    assert.deepEqual(instance.logged.slice(-2), [
      'metric: penstock_duplicate_attempts_total',
      'error: two attempts with one X-Request-ID reached the bank',
    ]);

    await repeat.recordResponse(bankResponse(202));
    const bothKnown = /^two attempts reached the bank: .*the bank answered 202.*; .*the bank answered 201/;
    const { entry } = await inDoubtWriteOf(state);
    assert.match(entry.why, bothKnown);
    assert.equal(entry.step, 'answered');
  });

  test('leaves the repeat in the list of writes in doubt when the bank has answered that one, too', async (t) => {
    const { state, instance, repeat } = await twoAttempts(t);
    await repeat.recordResponse(bankResponse(202));
    const listed = await instance.services.inDoubt.all();
    assert.deepEqual(
      listed.map(({ id }) => id),
      [(await inDoubtWriteOf(state)).id],
    );
  });

  test('leaves the repeat in doubt although the bank answered that one with 429', async (t) => {
    const { state, instance, repeat } = await twoAttempts(t);
    await repeat.release();
    assert.equal((await inDoubtWriteOf(state)).entry.step, 'in-doubt');
    assert.equal((await instance.services.inDoubt.all()).length, 1);
  });

  test('is not logged if it is a 429 and the outcome was did-not-happen', async (t) => {
    const { instance, claim } = await resolvedClaim(t, 'did-not-happen');
    await claim.release();
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });
});
