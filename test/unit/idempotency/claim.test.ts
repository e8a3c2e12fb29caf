import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  createInstance,
  createLossyState,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  lateAnswerMs,
  leaseMs,
  startInstance,
  storedOf,
  useFakeTime,
  windowMs,
} from './instance.ts';
import { initiation } from './requests.ts';

describe('a claim of an X-Request-ID', () => {
  test('expires ten seconds after the deadline of its request if nobody releases it', async (t) => {
    const { time, state, instance } = startInstance(t);
    await instance.claim(initiation({ withinMs: 5_000 }));
    time.skip(14_999);
    assert.equal((await entryOf(state))?.step, 'claimed');
    time.skip(1);
    assert.equal(await entryOf(state), undefined);
  });

  test('can be released after it has expired', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim(initiation({ withinMs: 5_000 }));
    time.skip(15_000);
    await claim.release();
    assert.equal(await entryOf(state), undefined);
    assert.equal(instance.services.pendingWrites.size(), 0);
  });

  test('marked as sending names its environment, never expires, and is in the index', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    assert.equal(claim.sendingTo(), undefined);
    await claim.markSending('production');
    assert.equal(claim.sendingTo(), 'production');
    time.skip(100 * windowMs);
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'sending');
    assert.equal(kept.environment, 'production');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
  });

  test('permits sending for one second after markSending began, however slow the state is', async (t) => {
    const time = useFakeTime(t);
    const connection = createBlockingState();
    const claim = await createInstance(connection).claim();
    const startedAtMs = performance.now();
    const unblock = connection.block('replace');
    const marking = claim.markSending('sandbox');
    time.skip(5_000);
    unblock();
    assert.equal(await marking, startedAtMs + 1_000);
  });

  test('marked as sending cannot be resolved while a late response may still arrive', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim(initiation({ withinMs: 5_000 }));
    time.skip(4_000);
    await claim.markSending('sandbox');
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'sending');
    assert.ok(kept.listenedUntil >= Date.now() + 1_000 + lateAnswerMs);
  });

  test('stores the response for the idempotency window and leaves the index', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    time.skip(60_000);
    await claim.recordResponse(bankResponse(201, 'made'));
    time.skip(windowMs - 1);
    assert.equal((await entryOf(state))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    time.skip(1);
    assert.equal(await entryOf(state), undefined);
  });

  test('with a 5xx response never expires, stays in the index, and is logged as in doubt', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(503));
    time.skip(100 * windowMs);
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'answered');
    assert.equal(kept.why, 'the bank answered 503');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  test('leaves neither entry nor index name when released before or after markSending', async (t) => {
    const { time, state, instance } = startInstance(t);
    await (await instance.claim()).release();
    time.skip(1);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.release();
    assert.equal(await storedOf(state), undefined);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('in doubt never expires, is in the index, and is logged with its reason', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('no answer');
    time.skip(100 * windowMs);
    const kept = await entryOf(state);
    assert.ok(kept?.step === 'in-doubt');
    assert.equal(kept.why, 'no answer');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  test('is logged as in doubt once, even if the call fails after the deadline', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('OUTCOME_UNKNOWN: The bank did not respond before the deadline.');
    await claim.markInDoubt("UPSTREAM_MALFORMED: The bank's response was cut off.");
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
    assert.equal(
      (await inDoubtWriteOf(state)).entry.why,
      'OUTCOME_UNKNOWN: The bank did not respond before the deadline.',
    );
  });

  test('cannot be marked in doubt or answered before it was sent', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markInDoubt('no reason');
    assert.equal((await entryOf(state))?.step, 'claimed');
    await claim.recordResponse(bankResponse(201));
    assert.equal(await entryOf(state), undefined);
    time.skip(1);
    await instance.claim();
  });

  test('in doubt is answered by a late response, and released if the bank did nothing', async (t) => {
    const { time, state, instance } = startInstance(t);
    const first = await instance.claim();
    await first.markSending('sandbox');
    await first.markInDoubt('no answer');
    await first.release();
    assert.equal(await entryOf(state), undefined);
    time.skip(1);

    const second = await instance.claim();
    await second.markSending('sandbox');
    await second.markInDoubt('no answer');
    await second.recordResponse(bankResponse(201));
    assert.equal((await entryOf(state))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });
});

describe('a response that depends on the write of the owner of its payment', () => {
  async function sendOne(t: Parameters<typeof startInstance>[0]) {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    return { state, instance, claim };
  }

  test('is recorded if the owner was set, and leaves the index', async (t) => {
    const { state, instance, claim } = await sendOne(t);
    assert.equal(await claim.recordResponseAfter(Promise.resolve(true), bankResponse(201)), true);
    assert.equal((await entryOf(state))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    await claim.markInDoubt('too late');
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  for (const [what, owner] of [
    ['was not set', async () => false],
    ['could not be written', () => Promise.reject(new Error('no answer'))],
  ] as const)
    test(`is not recorded if the owner ${what}, and can be put in doubt`, async (t) => {
      const { state, claim } = await sendOne(t);
      assert.equal(await claim.recordResponseAfter(owner(), bankResponse(201)), false);
      assert.equal((await entryOf(state))?.step, 'sending');
      await claim.markInDoubt('the payment belongs to another tenant');
      assert.equal((await entryOf(state))?.step, 'in-doubt');
    });

  test('is recorded alone after the reply to the common write was lost', async (t) => {
    useFakeTime(t);
    const connection = createLossyState(createFailingState());
    const instance = createInstance(connection);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    connection.loseNextReply();
    assert.equal(await claim.recordResponseAfter(Promise.resolve(true), bankResponse(201)), false);
    await claim.recordResponse(bankResponse(201));
    assert.equal((await entryOf(connection))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    assert.deepEqual(instance.logged, []);
  });
});

describe('a claim whose instance was suspended for longer than its lease', () => {
  test('fails to mark as sending after a takeover, and leaves the new claim alone', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    time.skip(leaseMs);
    const other = createInstance(state);
    const newClaim = await other.claim();
    assert.equal(await errorCodeOf(claim.markSending('sandbox')), 'DUPLICATE_IN_FLIGHT');
    assert.equal(claim.sendingTo(), undefined);
    await claim.release();
    await newClaim.markSending('sandbox');
    assert.equal((await entryOf(state))?.holder, other.services.instanceLeases.ownId);
  });

  test('fails to mark as sending after the claim expired', async (t) => {
    const { time, instance } = startInstance(t);
    const claim = await instance.claim();
    time.skip(60_000);
    assert.equal(await errorCodeOf(claim.markSending('sandbox')), 'DUPLICATE_IN_FLIGHT');
  });

  test('is not marked as sending, and is not remembered, if it is released before the state is checked', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    time.skip(leaseMs + 1);
    const marked = errorCodeOf(claim.markSending('sandbox'));
    await claim.release();
    assert.equal(await marked, 'STATE_UNAVAILABLE');
    assert.equal(await entryOf(state), undefined);
    assert.deepEqual([...instance.services.ownWrites.all()], []);
  });

  test('does not change the entry of the claim that replaced it', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    time.skip(leaseMs);
    const other = await createInstance(state).claim();
    await other.markSending('sandbox');
    await claim.release();
    await claim.markInDoubt('no response');
    assert.equal((await entryOf(state))?.step, 'sending');
    await other.recordResponse(bankResponse(201));
    await claim.release();
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  test('releases an entry that others put in doubt if nothing was sent', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    time.skip(leaseMs);
    await createInstance(state).services.inDoubt.scan();
    assert.equal((await entryOf(state))?.step, 'in-doubt');
    await claim.release();
    assert.equal(await entryOf(state), undefined);
  });

  test('stores the response to an entry that others put in doubt', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    time.skip(leaseMs);
    await createInstance(state).services.inDoubt.scan();
    await claim.recordResponse(bankResponse(201));
    assert.equal((await entryOf(state))?.step, 'answered');
  });
});

describe('a claim whose state loses the reply to a change', () => {
  test('is not sent if the reply to markSending is lost, and can be released', async (t) => {
    useFakeTime(t);
    const connection = createLossyState(createFailingState());
    const claim = await createInstance(connection).claim();
    connection.loseNextReply();
    assert.equal(await errorCodeOf(claim.markSending('sandbox')), 'STATE_UNAVAILABLE');
    assert.equal(claim.sendingTo(), undefined);
    await claim.release();
    assert.equal(await entryOf(connection), undefined);
  });

  test('is answered if the reply to recording the response is lost', async (t) => {
    useFakeTime(t);
    const connection = createLossyState(createFailingState());
    const instance = createInstance(connection);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    connection.loseNextReply();
    await claim.recordResponse(bankResponse(201));
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(connection))?.step, 'answered');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    assert.deepEqual(instance.logged, []);
  });

  test('is released if the reply to the release is lost, and the next claim is left alone', async (t) => {
    const time = useFakeTime(t);
    const connection = createLossyState(createFailingState());
    const instance = createInstance(connection);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    connection.loseNextReply();
    await claim.release();
    time.skip(1);
    const next = await instance.claim();
    await next.markSending('sandbox');
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(connection))?.step, 'sending');
    assert.equal((await instance.services.unresolvedIndex.list()).length, 1);
  });
});
