import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFailingState } from '../../kit/failing-state.ts';
import { createHeldState } from '../../kit/held-state.ts';
import {
  answer,
  codeOf,
  forgetfulWayTo,
  instanceOn,
  keptOf,
  lateAnswerMs,
  leaseMs,
  start,
  stopped,
  storedOf,
  windowMs,
} from './ledger.ts';
import { initiation } from './requests.ts';

describe('a claim', () => {
  test('lives a little longer than its request may take, so that one that is lost goes by itself', async (t) => {
    const { clocks, state, instance } = start(t);
    await instance.claim(initiation({ withinMs: 5_000 }));
    clocks.spend(14_999);
    assert.equal((await keptOf(state))?.step, 'claimed');
    clocks.spend(1);
    assert.equal(await keptOf(state), undefined);
  });

  test('is given back although nothing is left of it', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim(initiation({ withinMs: 5_000 }));
    clocks.spend(15_000);
    await claim.release();
    assert.equal(await keptOf(state), undefined);
    assert.equal(instance.lasting.owed.size(), 0);
  });

  test('that passes the fence says where the byte goes, and lives until somebody knows what became of it', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    assert.equal(claim.environment(), undefined);
    await claim.pass('production');
    assert.equal(claim.environment(), 'production');
    clocks.spend(100 * windowMs);
    const kept = await keptOf(state);
    assert.ok(kept?.step === 'sending');
    assert.equal(kept.environment, 'production');
    assert.equal((await instance.lasting.open.names()).length, 1);
  });

  test('lets the byte go for one second from when the last step began, however slow the state was', async (t) => {
    const clocks = stopped(t);
    const way = createHeldState();
    const claim = await instanceOn(way).claim();
    const beganAtMs = performance.now();
    const tell = way.hold('replace');
    const passing = claim.pass('sandbox');
    clocks.spend(5_000);
    tell();
    assert.equal(await passing, beganAtMs + 1_000);
  });

  test('keeps doubts from being called off for as long as an answer is listened for', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim(initiation({ withinMs: 5_000 }));
    clocks.spend(4_000);
    await claim.pass('sandbox');
    const kept = await keptOf(state);
    assert.ok(kept?.step === 'sending');
    assert.ok(kept.listenedUntil >= Date.now() + 1_000 + lateAnswerMs);
  });

  test('that is answered keeps the answer for the window from then on, and leaves the index', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    clocks.spend(60_000);
    await claim.answered(answer(201, 'made'));
    clocks.spend(windowMs - 1);
    assert.equal((await keptOf(state))?.step, 'answered');
    assert.deepEqual(await instance.lasting.open.names(), []);
    clocks.spend(1);
    assert.equal(await keptOf(state), undefined);
  });

  test('that is answered by 5xx keeps the answer for ever, stays in the index, and says so in the log', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    await claim.answered(answer(503));
    clocks.spend(100 * windowMs);
    const kept = await keptOf(state);
    assert.ok(kept?.step === 'answered');
    assert.equal(kept.why, 'the bank answered 503');
    assert.equal((await instance.lasting.open.names()).length, 1);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  test('that is given back leaves nothing, before the fence and behind it', async (t) => {
    const { clocks, state, instance } = start(t);
    await (await instance.claim()).release();
    clocks.spend(1);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    await claim.release();
    assert.equal(await storedOf(state), undefined);
    assert.deepEqual(await instance.lasting.open.names(), []);
  });

  test('that is in doubt says why for ever, in the index and in the log', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    await claim.doubt('no answer');
    clocks.spend(100 * windowMs);
    const kept = await keptOf(state);
    assert.ok(kept?.step === 'in-doubt');
    assert.equal(kept.why, 'no answer');
    assert.equal((await instance.lasting.open.names()).length, 1);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  test('cannot be in doubt, nor answered, while nothing was sent', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.doubt('no reason');
    assert.equal((await keptOf(state))?.step, 'claimed');
    await claim.answered(answer(201));
    assert.equal(await keptOf(state), undefined);
    clocks.spend(1);
    await instance.claim();
  });

  test('that was in doubt is answered when the bank answers late, and given back when it has done nothing', async (t) => {
    const { clocks, state, instance } = start(t);
    const first = await instance.claim();
    await first.pass('sandbox');
    await first.doubt('no answer');
    await first.release();
    assert.equal(await keptOf(state), undefined);
    clocks.spend(1);

    const second = await instance.claim();
    await second.pass('sandbox');
    await second.doubt('no answer');
    await second.answered(answer(201));
    assert.equal((await keptOf(state))?.step, 'answered');
    assert.deepEqual(await instance.lasting.open.names(), []);
  });
});

describe('a claim whose instance stood still for longer than a lease', () => {
  test('does not pass the fence when another has taken over, which is not disturbed', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    clocks.spend(leaseMs);
    const other = instanceOn(state);
    const taken = await other.claim();
    assert.equal(await codeOf(claim.pass('sandbox')), 'DUPLICATE_IN_FLIGHT');
    assert.equal(claim.environment(), undefined);
    await claim.release();
    await taken.pass('sandbox');
    assert.equal((await keptOf(state))?.holder, other.lasting.holders.own);
  });

  test('does not pass the fence when its claim has gone by itself', async (t) => {
    const { clocks, instance } = start(t);
    const claim = await instance.claim();
    clocks.spend(60_000);
    assert.equal(await codeOf(claim.pass('sandbox')), 'DUPLICATE_IN_FLIGHT');
  });

  test('takes nothing away from the one that came after it, however it ends', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    clocks.spend(leaseMs);
    const other = await instanceOn(state).claim();
    await other.pass('sandbox');
    await claim.release();
    await claim.doubt('nobody knows');
    assert.equal((await keptOf(state))?.step, 'sending');
    await other.answered(answer(201));
    await claim.release();
    assert.equal((await keptOf(state))?.step, 'answered');
  });

  test('gives back what others had put in doubt, if nothing was sent in the end', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    clocks.spend(leaseMs);
    await instanceOn(state).lasting.doubts.lookAround();
    assert.equal((await keptOf(state))?.step, 'in-doubt');
    await claim.release();
    assert.equal(await keptOf(state), undefined);
  });

  test('answers what others had put in doubt', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    clocks.spend(leaseMs);
    await instanceOn(state).lasting.doubts.lookAround();
    await claim.answered(answer(201));
    assert.equal((await keptOf(state))?.step, 'answered');
  });
});

describe('a state that takes a step without saying so', () => {
  test('at the fence has nothing sent, and the claim can be given back', async (t) => {
    stopped(t);
    const way = forgetfulWayTo(createFailingState());
    const claim = await instanceOn(way).claim();
    way.forgetNext();
    assert.equal(await codeOf(claim.pass('sandbox')), 'STATE_UNAVAILABLE');
    assert.equal(claim.environment(), undefined);
    await claim.release();
    assert.equal(await keptOf(way), undefined);
  });

  test('of an answer is asked again, and the answer stands', async (t) => {
    stopped(t);
    const way = forgetfulWayTo(createFailingState());
    const instance = instanceOn(way);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    way.forgetNext();
    await claim.answered(answer(201));
    await instance.lasting.owed.settle();
    assert.equal((await keptOf(way))?.step, 'answered');
    assert.deepEqual(await instance.lasting.open.names(), []);
    assert.deepEqual(instance.logged, []);
  });

  test('that gave a claim back is asked again, and the next claim is left alone', async (t) => {
    const clocks = stopped(t);
    const way = forgetfulWayTo(createFailingState());
    const instance = instanceOn(way);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    way.forgetNext();
    await claim.release();
    clocks.spend(1);
    const next = await instance.claim();
    await next.pass('sandbox');
    await instance.lasting.owed.settle();
    assert.equal((await keptOf(way))?.step, 'sending');
    assert.equal((await instance.lasting.open.names()).length, 1);
  });
});
