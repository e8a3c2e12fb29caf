import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PisRequest } from '../../../src/flow/messages.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  answer,
  codeOf,
  doubtOf,
  findAt,
  instanceOn,
  keptOf,
  lateAnswerMs,
  type OneInstance,
  start,
  stopped,
  windowMs,
} from './ledger.ts';
import { cancellation, initiation } from './requests.ts';

const said = { who: 'an operator', reason: 'so says the bank' } as const;

/** Puts a request in doubt that may take ten seconds. */
async function doubt(instance: OneInstance, request?: PisRequest) {
  const claim = await instance.claim(request);
  await claim.pass('sandbox');
  await claim.doubt('no answer');
  return claim;
}

describe('a doubt of which operators say that it happened', () => {
  const outcome = 'happened';

  test('is one no longer, and its payment is known from then on', async (t) => {
    const { state, instance } = start(t);
    await doubt(instance);
    const { id } = await doubtOf(state);
    const resolved = await instance.resolve({ ...said, id, outcome, paymentId: 'a-payment' });
    assert.deepEqual(resolved, { kind: 'resolved' });
    const kept = await keptOf(state);
    assert.ok(kept?.step === 'happened');
    assert.equal(kept.paymentId, 'a-payment');
    assert.deepEqual(instance.learnt, ['a-payment of shop in sandbox, remembered']);
    assert.deepEqual(await instance.lasting.open.names(), []);
    assert.deepEqual(await instance.lasting.doubts.all(), []);
  });

  test('may be resolved while the bank is still listened to', async (t) => {
    const { state, instance } = start(t);
    await doubt(instance);
    const { id } = await doubtOf(state);
    assert.equal((await instance.resolve({ ...said, id, outcome })).kind, 'resolved');
    assert.deepEqual(instance.learnt, [], 'the bank did not name the payment');
  });

  test('is remembered for ever if it is a standing order', async (t) => {
    const { state, instance } = start(t);
    const request = initiation({ service: 'periodic-payments' });
    await doubt(instance, request);
    const { id } = await doubtOf(state, request);
    await instance.resolve({ ...said, id, outcome, paymentId: 'an-order' });
    assert.deepEqual(instance.learnt, ['an-order of shop in sandbox, endless']);
  });

  test('keeps the payment that it was about, whatever they say it is called', async (t) => {
    const { state, instance } = start(t);
    await doubt(instance, cancellation());
    const { id } = await doubtOf(state, cancellation());
    await instance.resolve({ ...said, id, outcome, paymentId: 'another' });
    const kept = await keptOf(state, cancellation());
    assert.equal(kept?.paymentId, 'a-payment');
    assert.deepEqual(instance.learnt, []);
  });

  test('is kept for repeats for the window from then on', async (t) => {
    const { clocks, state, instance } = start(t);
    await doubt(instance);
    clocks.spend(10 * windowMs);
    const { id } = await doubtOf(state);
    await instance.resolve({ ...said, id, outcome });
    clocks.spend(windowMs - 1);
    assert.equal((await keptOf(state))?.step, 'happened');
    clocks.spend(1);
    assert.equal(await keptOf(state), undefined);
  });

  test('though the bank answered 5xx, is told to repeats instead of that answer', async (t) => {
    const { state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    await claim.answered(answer(504));
    const { id } = await doubtOf(state);
    await instance.resolve({ ...said, id, outcome, paymentId: 'a-payment' });
    assert.equal((await findAt(instance)).kind, 'happened');
  });
});

describe('a doubt of which operators say that it did not happen', () => {
  const outcome = 'did-not-happen';

  test('is free again, but not before the bank can no longer act on it', async (t) => {
    const { clocks, state, instance } = start(t);
    await doubt(instance);
    const { id, entry } = await doubtOf(state);
    clocks.spend(entry.listenedUntil - Date.now() - 1);
    assert.deepEqual(await instance.resolve({ ...said, id, outcome }), { kind: 'too-early', seconds: 1 });
    assert.equal((await findAt(instance)).kind, 'in-doubt');
    assert.deepEqual(instance.audited, []);
    clocks.spend(1);
    assert.deepEqual(await instance.resolve({ ...said, id, outcome }), { kind: 'resolved' });
    clocks.spend(1);
    assert.equal((await findAt(instance)).kind, 'free');
    assert.deepEqual(await instance.lasting.open.names(), []);
  });

  test('says for how long the bank may still act', async (t) => {
    const { clocks, state, instance } = start(t);
    await doubt(instance);
    clocks.spend(500);
    const { id } = await doubtOf(state);
    const seconds = (10_000 + lateAnswerMs) / 1_000;
    assert.deepEqual(await instance.resolve({ ...said, id, outcome }), { kind: 'too-early', seconds });
  });

  test('may be an answer of 5xx, under the same condition', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    await claim.answered(answer(503));
    const { id } = await doubtOf(state);
    assert.equal((await instance.resolve({ ...said, id, outcome })).kind, 'too-early');
    clocks.spend(lateAnswerMs + 10_000);
    assert.equal((await instance.resolve({ ...said, id, outcome })).kind, 'resolved');
  });
});

describe('what cannot be resolved', () => {
  test('is what is not in doubt: free, running, answered, resolved before', async (t) => {
    const { state, instance } = start(t);
    const say = (id: string) => instance.resolve({ ...said, id, outcome: 'happened' });
    assert.deepEqual(await say('nothing'), { kind: 'unknown' });
    const claim = await instance.claim();
    await claim.pass('sandbox');
    const [name = ''] = await instance.lasting.open.names();
    assert.deepEqual(await say(name), { kind: 'unknown' });
    await claim.doubt('no answer');
    assert.equal((await doubtOf(state)).id, name);
    assert.deepEqual(await say(name), { kind: 'resolved' });
    assert.deepEqual(await say(name), { kind: 'unknown' });
    assert.equal(instance.audited.length, 1);
  });

  test('is a doubt under the id of which another one stands by now: they have not asked the bank about it', async (t) => {
    const { clocks, state, instance } = start(t);
    await doubt(instance);
    const { id } = await doubtOf(state);
    clocks.spend(lateAnswerMs + 10_000);
    await instance.resolve({ ...said, id, outcome: 'did-not-happen' });
    clocks.spend(1);
    await doubt(instance);
    clocks.spend(lateAnswerMs + 10_000);
    const late = await instance.resolve({ ...said, id, outcome: 'did-not-happen' });
    assert.deepEqual(late, { kind: 'unknown' });
    assert.equal((await findAt(instance)).kind, 'in-doubt');
  });

  test("is a doubt that the bank's own answer has resolved in between", async (t) => {
    const { state, instance } = start(t);
    const claim = await doubt(instance);
    const { id } = await doubtOf(state);
    const way = {
      ...state,
      keyValues: {
        ...state.keyValues,
        async read(key: string) {
          const read = await state.keyValues.read(key);
          await claim.answered(answer(201));
          return read;
        },
      },
    };
    const resolved = await instanceOn(way).resolve({ ...said, id, outcome: 'happened' });
    assert.deepEqual(resolved, { kind: 'unknown' });
    assert.equal((await keptOf(state))?.step, 'answered');
  });
});

describe('a resolution', () => {
  test('stands in the audit log with who said what, and why', async (t) => {
    const { state, instance } = start(t);
    await doubt(instance);
    const { id, entry } = await doubtOf(state);
    await instance.resolve({ ...said, id, outcome: 'happened', paymentId: 'a-payment' });
    const { requestId, operation, tenant, environment } = entry;
    assert.deepEqual(instance.audited, [
      {
        who: said.who,
        outcome: 'happened',
        requestId,
        operation,
        tenant,
        environment,
        paymentId: 'a-payment',
        reason: said.reason,
      },
    ]);
  });

  test('is done although the index is out of reach: looking around finds it closed', async (t) => {
    stopped(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await doubt(instance);
    const { id } = await doubtOf(state);
    state.fail('remove');
    assert.deepEqual(await instance.resolve({ ...said, id, outcome: 'happened' }), { kind: 'resolved' });
    state.heal();
    assert.equal(await instanceOn(state).lasting.doubts.lookAround(), 0);
    assert.deepEqual(await instance.lasting.open.names(), []);
  });

  test('that the state does not take leaves the doubt', async (t) => {
    stopped(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await doubt(instance);
    const { id } = await doubtOf(state);
    state.fail('replace');
    const failed = instance.resolve({ ...said, id, outcome: 'happened' });
    assert.equal(await codeOf(failed), 'STATE_UNAVAILABLE');
    state.heal();
    assert.equal((await instance.lasting.doubts.all()).length, 1);
  });
});
