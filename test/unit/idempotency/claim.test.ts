import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createClaim } from '../../../src/idempotency/claim.ts';
import { createLedgerServices } from '../../../src/idempotency/ledger-services.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { claimedFixture } from './entry-fixtures.ts';
import {
  bankResponse,
  createLossyState,
  entryOf,
  errorCodeOf,
  instanceOn,
  lateAnswerMs,
  leaseMs,
  startInstance,
  storedOf,
  useFakeTime,
  windowMs,
} from './instance.ts';
import { initiation } from './requests.ts';

describe('a claim', () => {
  test('lives a little longer than its request may take, so that one that is lost goes by itself', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await instance.claim(initiation({ withinMs: 5_000 }));
    clocks.skip(14_999);
    assert.equal((await entryOf(state))?.step, 'claimed');
    clocks.skip(1);
    assert.equal(await entryOf(state), undefined);
  });

  test('is given back although nothing is left of it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim(initiation({ withinMs: 5_000 }));
    clocks.skip(15_000);
    await claim.release();
    assert.equal(await entryOf(state), undefined);
    assert.equal(instance.services.pendingWrites.size(), 0);
  });

  test('that passes the fence says where the byte goes, and lives until somebody knows what became of it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    assert.equal(claim.sendingTo(), undefined);
    await claim.markSending('production');
    assert.equal(claim.sendingTo(), 'production');
    clocks.skip(100 * windowMs);
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'sending');
    assert.equal(kept.environment, 'production');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
  });

  test('lets the byte go for one second from when the last step began, however slow the state was', async (t) => {
    const clocks = useFakeTime(t);
    const way = createBlockingState();
    const claim = await instanceOn(way).claim();
    const beganAtMs = performance.now();
    const tell = way.block('replace');
    const passing = claim.markSending('sandbox');
    clocks.skip(5_000);
    tell();
    assert.equal(await passing, beganAtMs + 1_000);
  });

  test('keeps doubts from being called off for as long as an answer is listened for', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim(initiation({ withinMs: 5_000 }));
    clocks.skip(4_000);
    await claim.markSending('sandbox');
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'sending');
    assert.ok(kept.listenedUntil >= Date.now() + 1_000 + lateAnswerMs);
  });

  test('that is answered keeps the answer for the window from then on, and leaves the index', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    clocks.skip(60_000);
    await claim.recordResponse(bankResponse(201, 'made'));
    clocks.skip(windowMs - 1);
    assert.equal((await entryOf(state))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    clocks.skip(1);
    assert.equal(await entryOf(state), undefined);
  });

  test('that is answered by 5xx keeps the answer for ever, stays in the index, and says so in the log', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(503));
    clocks.skip(100 * windowMs);
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'answered');
    assert.equal(kept.why, 'the bank answered 503');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  test('that is given back leaves nothing, before the fence and behind it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await (await instance.claim()).release();
    clocks.skip(1);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.release();
    assert.equal(await storedOf(state), undefined);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('that is in doubt says why for ever, in the index and in the log', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('no answer');
    clocks.skip(100 * windowMs);
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'in-doubt');
    assert.equal(kept.why, 'no answer');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  test('cannot be in doubt, nor answered, while nothing was sent', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markInDoubt('no reason');
    assert.equal((await entryOf(state))?.step, 'claimed');
    await claim.recordResponse(bankResponse(201));
    assert.equal(await entryOf(state), undefined);
    clocks.skip(1);
    await instance.claim();
  });

  test('that was in doubt is answered when the bank answers late, and given back when it has done nothing', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const first = await instance.claim();
    await first.markSending('sandbox');
    await first.markInDoubt('no answer');
    await first.release();
    assert.equal(await entryOf(state), undefined);
    clocks.skip(1);

    const second = await instance.claim();
    await second.markSending('sandbox');
    await second.markInDoubt('no answer');
    await second.recordResponse(bankResponse(201));
    assert.equal((await entryOf(state))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });
});

describe('a claim whose instance stood still for longer than a lease', () => {
  test('does not pass the fence when another has taken over, which is not disturbed', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    clocks.skip(leaseMs);
    const other = instanceOn(state);
    const taken = await other.claim();
    assert.equal(await errorCodeOf(claim.markSending('sandbox')), 'DUPLICATE_IN_FLIGHT');
    assert.equal(claim.sendingTo(), undefined);
    await claim.release();
    await taken.markSending('sandbox');
    assert.equal((await entryOf(state))?.holder, other.services.instanceLeases.ownId);
  });

  test('does not pass the fence when its claim has gone by itself', async (t) => {
    const { clocks, instance } = startInstance(t);
    const claim = await instance.claim();
    clocks.skip(60_000);
    assert.equal(await errorCodeOf(claim.markSending('sandbox')), 'DUPLICATE_IN_FLIGHT');
  });

  test('takes nothing away from the one that came after it, however it ends', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    clocks.skip(leaseMs);
    const other = await instanceOn(state).claim();
    await other.markSending('sandbox');
    await claim.release();
    await claim.markInDoubt('nobody knows');
    assert.equal((await entryOf(state))?.step, 'sending');
    await other.recordResponse(bankResponse(201));
    await claim.release();
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  test('gives back what others had put in doubt, if nothing was sent in the end', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    clocks.skip(leaseMs);
    await instanceOn(state).services.inDoubt.scan();
    assert.equal((await entryOf(state))?.step, 'in-doubt');
    await claim.release();
    assert.equal(await entryOf(state), undefined);
  });

  test('answers what others had put in doubt', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    clocks.skip(leaseMs);
    await instanceOn(state).services.inDoubt.scan();
    await claim.recordResponse(bankResponse(201));
    assert.equal((await entryOf(state))?.step, 'answered');
  });
});

describe('a state that takes a step without saying so', () => {
  test('at the fence has nothing sent, and the claim can be given back', async (t) => {
    useFakeTime(t);
    const way = createLossyState(createFailingState());
    const claim = await instanceOn(way).claim();
    way.forgetNext();
    assert.equal(await errorCodeOf(claim.markSending('sandbox')), 'STATE_UNAVAILABLE');
    assert.equal(claim.sendingTo(), undefined);
    await claim.release();
    assert.equal(await entryOf(way), undefined);
  });

  test('of an answer is asked again, and the answer stands', async (t) => {
    useFakeTime(t);
    const way = createLossyState(createFailingState());
    const instance = instanceOn(way);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    way.forgetNext();
    await claim.recordResponse(bankResponse(201));
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(way))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    assert.deepEqual(instance.logged, []);
  });

  test('that gave a claim back is asked again, and the next claim is left alone', async (t) => {
    const clocks = useFakeTime(t);
    const way = createLossyState(createFailingState());
    const instance = instanceOn(way);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    way.forgetNext();
    await claim.release();
    clocks.skip(1);
    const next = await instance.claim();
    await next.markSending('sandbox');
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(way))?.step, 'sending');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
  });
});

describe('a claim', () => {
  test('that is in doubt at the deadline is told of once, though the call fails later as well', async () => {
    const logged: string[] = [];
    const ledger = createLedgerServices(
      createMemoryState(),
      (_level, message) => logged.push(message),
      () => {},
    );
    await ledger.store.create('an-id', claimedFixture, 60_000);
    const claim = createClaim(ledger, {
      id: 'an-id',
      entry: claimedFixture,
      lateAnswerMs: 60_000,
      windowMs: 60_000,
    });
    await claim.markSending('sandbox');
    await claim.markInDoubt('OUTCOME_UNKNOWN: The bank did not answer in time.');
    await claim.markInDoubt('UPSTREAM_MALFORMED: The bank broke its answer off.');
    assert.deepEqual(logged, ['a payment is in doubt']);
  });
});
