import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLedgerServices } from '../../../src/idempotency/ledger-services.ts';
import { attemptName } from '../../../src/idempotency/ledger-store.ts';
import { createResolve } from '../../../src/idempotency/resolve.ts';
import type { PisRequest } from '../../../src/request/messages.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { claimedFixture, sentFixture } from './entry-fixtures.ts';
import {
  bankResponse,
  claimAt,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  instanceOn,
  type LedgerInstance,
  lateAnswerMs,
  startInstance,
  useFakeTime,
  windowMs,
} from './instance.ts';
import { cancellation, initiation } from './requests.ts';

const said = { who: 'an operator', reason: 'so says the bank' } as const;

/** Puts a request in doubt that may take ten seconds. */
async function doubt(instance: LedgerInstance, request?: PisRequest) {
  const claim = await instance.claim(request);
  await claim.markSending('sandbox');
  await claim.markInDoubt('no answer');
  return claim;
}

describe('a doubt of which operators say that it happened', () => {
  const outcome = 'happened';

  test('is one no longer, and its payment is known from then on', async (t) => {
    const { state, instance } = startInstance(t);
    await doubt(instance);
    const { id } = await inDoubtWriteOf(state);
    const resolved = await instance.resolve({ ...said, id, outcome, paymentId: 'a-payment' });
    assert.deepEqual(resolved, { kind: 'resolved' });
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'happened');
    assert.equal(kept.paymentId, 'a-payment');
    assert.deepEqual(instance.recordedAffinities, ['a-payment of shop in sandbox, remembered']);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    assert.deepEqual(await instance.services.inDoubt.all(), []);
  });

  test('may be resolved while the bank is still listened to', async (t) => {
    const { state, instance } = startInstance(t);
    await doubt(instance);
    const { id } = await inDoubtWriteOf(state);
    assert.equal((await instance.resolve({ ...said, id, outcome })).kind, 'resolved');
    assert.deepEqual(instance.recordedAffinities, [], 'the bank did not name the payment');
  });

  test('is remembered for ever if it is a standing order', async (t) => {
    const { state, instance } = startInstance(t);
    const request = initiation({ service: 'periodic-payments' });
    await doubt(instance, request);
    const { id } = await inDoubtWriteOf(state, request);
    await instance.resolve({ ...said, id, outcome, paymentId: 'an-order' });
    assert.deepEqual(instance.recordedAffinities, ['an-order of shop in sandbox, endless']);
  });

  test('keeps the payment that it was about, whatever they say it is called', async (t) => {
    const { state, instance } = startInstance(t);
    await doubt(instance, cancellation());
    const { id } = await inDoubtWriteOf(state, cancellation());
    await instance.resolve({ ...said, id, outcome, paymentId: 'another' });
    const kept = await entryOf(state, cancellation());
    assert.equal(kept?.paymentId, 'a-payment');
    assert.deepEqual(instance.recordedAffinities, []);
  });

  test('is kept for repeats for the window from then on', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await doubt(instance);
    clocks.skip(10 * windowMs);
    const { id } = await inDoubtWriteOf(state);
    await instance.resolve({ ...said, id, outcome });
    clocks.skip(windowMs - 1);
    assert.equal((await entryOf(state))?.step, 'happened');
    clocks.skip(1);
    assert.equal(await entryOf(state), undefined);
  });

  test('though the bank answered 5xx, is told to repeats instead of that answer', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(504));
    const { id } = await inDoubtWriteOf(state);
    await instance.resolve({ ...said, id, outcome, paymentId: 'a-payment' });
    assert.equal((await claimAt(instance)).kind, 'happened');
  });
});

describe('a doubt of which operators say that it did not happen', () => {
  const outcome = 'did-not-happen';

  test('is free again, but not before the bank can no longer act on it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await doubt(instance);
    const { id, entry } = await inDoubtWriteOf(state);
    clocks.skip(entry.listenedUntil - Date.now() - 1);
    assert.deepEqual(await instance.resolve({ ...said, id, outcome }), { kind: 'too-early', seconds: 1 });
    assert.equal((await claimAt(instance)).kind, 'in-doubt');
    assert.deepEqual(instance.auditEvents, []);
    clocks.skip(1);
    assert.deepEqual(await instance.resolve({ ...said, id, outcome }), { kind: 'resolved' });
    clocks.skip(1);
    assert.equal((await claimAt(instance)).kind, 'free');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('says for how long the bank may still act', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await doubt(instance);
    clocks.skip(500);
    const { id } = await inDoubtWriteOf(state);
    const seconds = (10_000 + lateAnswerMs) / 1_000;
    assert.deepEqual(await instance.resolve({ ...said, id, outcome }), { kind: 'too-early', seconds });
  });

  test('may be an answer of 5xx, under the same condition', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(503));
    const { id } = await inDoubtWriteOf(state);
    assert.equal((await instance.resolve({ ...said, id, outcome })).kind, 'too-early');
    clocks.skip(lateAnswerMs + 10_000);
    assert.equal((await instance.resolve({ ...said, id, outcome })).kind, 'resolved');
  });
});

describe('what cannot be resolved', () => {
  test('is what is not in doubt: free, running, answered, resolved before', async (t) => {
    const { state, instance } = startInstance(t);
    const say = (id: string) => instance.resolve({ ...said, id, outcome: 'happened' });
    assert.deepEqual(await say('nothing'), { kind: 'unknown' });
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    const [name = ''] = await instance.services.unresolvedIndex.list();
    assert.deepEqual(await say(name), { kind: 'unknown' });
    await claim.markInDoubt('no answer');
    assert.equal((await inDoubtWriteOf(state)).id, name);
    assert.deepEqual(await say(name), { kind: 'resolved' });
    assert.deepEqual(await say(name), { kind: 'unknown' });
    assert.equal(instance.auditEvents.length, 1);
  });

  test('is a doubt under the id of which another one stands by now: they have not asked the bank about it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await doubt(instance);
    const { id } = await inDoubtWriteOf(state);
    clocks.skip(lateAnswerMs + 10_000);
    await instance.resolve({ ...said, id, outcome: 'did-not-happen' });
    clocks.skip(1);
    await doubt(instance);
    clocks.skip(lateAnswerMs + 10_000);
    const late = await instance.resolve({ ...said, id, outcome: 'did-not-happen' });
    assert.deepEqual(late, { kind: 'unknown' });
    assert.equal((await claimAt(instance)).kind, 'in-doubt');
  });

  test("is a doubt that the bank's own answer has resolved in between", async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await doubt(instance);
    const { id } = await inDoubtWriteOf(state);
    const way = {
      ...state,
      keyValues: {
        ...state.keyValues,
        async read(key: string) {
          const read = await state.keyValues.read(key);
          await claim.recordResponse(bankResponse(201));
          return read;
        },
      },
    };
    const resolved = await instanceOn(way).resolve({ ...said, id, outcome: 'happened' });
    assert.deepEqual(resolved, { kind: 'unknown' });
    assert.equal((await entryOf(state))?.step, 'answered');
  });
});

describe('a resolution', () => {
  test('stands in the audit log with who said what, and why', async (t) => {
    const { state, instance } = startInstance(t);
    await doubt(instance);
    const { id, entry } = await inDoubtWriteOf(state);
    await instance.resolve({ ...said, id, outcome: 'happened', paymentId: 'a-payment' });
    const { requestId, operation, tenant, environment } = entry;
    assert.deepEqual(instance.auditEvents, [
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
    useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await doubt(instance);
    const { id } = await inDoubtWriteOf(state);
    state.fail('remove');
    assert.deepEqual(await instance.resolve({ ...said, id, outcome: 'happened' }), { kind: 'resolved' });
    state.recover();
    assert.equal(await instanceOn(state).services.inDoubt.scan(), 0);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('that the state does not take leaves the doubt', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await doubt(instance);
    const { id } = await inDoubtWriteOf(state);
    state.fail('replace');
    const failed = instance.resolve({ ...said, id, outcome: 'happened' });
    assert.equal(await errorCodeOf(failed), 'STATE_UNAVAILABLE');
    state.recover();
    assert.equal((await instance.services.inDoubt.all()).length, 1);
  });
});

const inDoubtName = attemptName('an-id', claimedFixture.attempt);
const inDoubtFixture = {
  ...claimedFixture,
  ...sentFixture,
  step: 'in-doubt',
  why: 'OUTCOME_UNKNOWN: The bank did not answer in time.',
} as const;

describe('a doubt that operators resolve', () => {
  test('is counted no longer, although the state did not take it out of the index at once', async () => {
    const state = createFailingState();
    let count = 0;
    const ledger = createLedgerServices(
      state,
      () => {},
      (doubts) => {
        count = doubts;
      },
    );
    const resolve = createResolve({
      ...ledger,
      affinity: { recordEnvironment: async () => {} },
      audit: { record: async () => {} },
      windowMs: () => 60_000,
    });
    await ledger.store.create('an-id', inDoubtFixture, 60_000);
    await ledger.unresolvedIndex.add(inDoubtName);
    await ledger.maintain();
    assert.equal(count, 1);

    state.fail('remove');
    await resolve({ id: inDoubtName, who: 'ann', outcome: 'did-not-happen', reason: 'the bank said so' });
    state.recover();
    for (let beats = 0; beats < 5; beats++) await ledger.maintain();
    assert.equal(count, 0);
  });
});
