import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PisRequest } from '../../../src/request/messages.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  createInstance,
  entryOf,
  errorCodeOf,
  foreignPaymentId,
  type Instance,
  inDoubtWriteOf,
  lateAnswerMs,
  startInstance,
  useFakeTime,
  windowMs,
} from './instance.ts';
import { cancellation, initiation } from './requests.ts';

const given = { who: 'an operator', reason: 'confirmed by the bank' } as const;

/** Puts a request in doubt. By default, the deadline of the request is in ten seconds. */
async function putInDoubt(instance: Instance, request?: PisRequest) {
  const claim = await instance.claim(request);
  await claim.markSending('sandbox');
  await claim.markInDoubt('no answer');
  return claim;
}

describe('a write in doubt in production', () => {
  async function startInProduction(t: Parameters<typeof startInstance>[0]) {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('production');
    await claim.markInDoubt('no answer');
    time.skip(lateAnswerMs + 10_000);
    const { id } = await inDoubtWriteOf(state);
    const resolve = (outcome: 'happened' | 'did-not-happen', confirm?: string) =>
      instance.resolve({ ...given, id, outcome, confirm });
    return { state, instance, resolve };
  }

  test('is resolved as did-not-happen only with the name of the environment', async (t) => {
    const { state, instance, resolve } = await startInProduction(t);
    for (const confirm of [undefined, '', 'sandbox', 'Production'])
      assert.deepEqual(await resolve('did-not-happen', confirm), {
        kind: 'unconfirmed',
        environment: 'production',
      });
    assert.equal((await entryOf(state))?.step, 'in-doubt');
    assert.deepEqual(instance.auditEvents, []);
    assert.deepEqual(await resolve('did-not-happen', 'production'), { kind: 'resolved' });
  });

  test('is resolved as happened without it, because no repeat is sent to the bank', async (t) => {
    const { resolve } = await startInProduction(t);
    assert.deepEqual(await resolve('happened'), { kind: 'resolved' });
  });
});

describe('a write in doubt that is resolved as happened', () => {
  const outcome = 'happened';

  test('is no longer in doubt, and its payment id and affinity are recorded', async (t) => {
    const { state, instance } = startInstance(t);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    const resolved = await instance.resolve({ ...given, id, outcome, paymentId: 'a-payment' });
    assert.deepEqual(resolved, { kind: 'resolved' });
    const entry = await entryOf(state);
    assert.ok(entry?.step === 'happened');
    assert.equal(entry.paymentId, 'a-payment');
    assert.deepEqual(instance.recordedAffinities, [
      'a-payment of shop in sandbox, payments/sepa-credit-transfers, expiring',
    ]);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
    assert.deepEqual(await instance.services.inDoubt.all(), []);
  });

  test('can be resolved while a late response may still arrive, and without a payment id', async (t) => {
    const { state, instance } = startInstance(t);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    assert.equal((await instance.resolve({ ...given, id, outcome })).kind, 'resolved');
    assert.deepEqual(instance.recordedAffinities, []);
  });

  test('stays in doubt if the operator names a payment of another tenant', async (t) => {
    const { state, instance } = startInstance(t);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    const resolved = await instance.resolve({ ...given, id, outcome, paymentId: foreignPaymentId });
    assert.deepEqual(resolved, { kind: 'foreign-payment' });
    assert.equal((await entryOf(state))?.step, 'in-doubt');
    assert.deepEqual(instance.auditEvents, []);
  });

  test('has a permanent environment affinity if it initiates a periodic payment', async (t) => {
    const { state, instance } = startInstance(t);
    const request = initiation({ service: 'periodic-payments' });
    await putInDoubt(instance, request);
    const { id } = await inDoubtWriteOf(state, request);
    await instance.resolve({ ...given, id, outcome, paymentId: 'an-order' });
    assert.deepEqual(instance.recordedAffinities, [
      'an-order of shop in sandbox, periodic-payments/sepa-credit-transfers, permanent',
    ]);
  });

  test('keeps the id of the cancelled payment if it is a cancellation, even if the operator gives another id', async (t) => {
    const { state, instance } = startInstance(t);
    await putInDoubt(instance, cancellation());
    const { id } = await inDoubtWriteOf(state, cancellation());
    await instance.resolve({ ...given, id, outcome, paymentId: 'another' });
    const entry = await entryOf(state, cancellation());
    assert.equal(entry?.paymentId, 'a-payment');
    assert.deepEqual(instance.recordedAffinities, []);
  });

  test('remains stored for one idempotency window after its resolution', async (t) => {
    const { time, state, instance } = startInstance(t);
    await putInDoubt(instance);
    time.skip(10 * windowMs);
    const { id } = await inDoubtWriteOf(state);
    await instance.resolve({ ...given, id, outcome });
    time.skip(windowMs - 1);
    assert.equal((await entryOf(state))?.step, 'happened');
    time.skip(1);
    assert.equal(await entryOf(state), undefined);
  });

  test('is reported as happened to a repeated request, instead of the stored 5xx response', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(504));
    const { id } = await inDoubtWriteOf(state);
    await instance.resolve({ ...given, id, outcome, paymentId: 'a-payment' });
    assert.equal((await instance.lookUp()).kind, 'happened');
  });
});

describe('a write in doubt that is resolved as did-not-happen', () => {
  const outcome = 'did-not-happen';

  test('can be resolved only after the time for late responses, and can then be claimed again', async (t) => {
    const { time, state, instance } = startInstance(t);
    await putInDoubt(instance);
    const { id, entry } = await inDoubtWriteOf(state);
    time.skip(entry.listenedUntil - Date.now() - 1);
    assert.deepEqual(await instance.resolve({ ...given, id, outcome }), { kind: 'too-early', seconds: 1 });
    assert.equal((await instance.lookUp()).kind, 'in-doubt');
    assert.deepEqual(instance.auditEvents, []);
    time.skip(1);
    assert.deepEqual(await instance.resolve({ ...given, id, outcome }), { kind: 'resolved' });
    time.skip(1);
    assert.equal((await instance.lookUp()).kind, 'claimed');
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('is too early to resolve, and the result contains the seconds until it can be resolved', async (t) => {
    const { time, state, instance } = startInstance(t);
    await putInDoubt(instance);
    time.skip(500);
    const { id } = await inDoubtWriteOf(state);
    const seconds = (10_000 + lateAnswerMs) / 1_000;
    assert.deepEqual(await instance.resolve({ ...given, id, outcome }), { kind: 'too-early', seconds });
  });

  test('can be a request with a stored 5xx response, also only after the time for late responses', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(503));
    const { id } = await inDoubtWriteOf(state);
    assert.equal((await instance.resolve({ ...given, id, outcome })).kind, 'too-early');
    time.skip(lateAnswerMs + 10_000);
    assert.equal((await instance.resolve({ ...given, id, outcome })).kind, 'resolved');
  });
});

describe('a resolution of an attempt that is not in doubt', () => {
  test('is rejected if the attempt does not exist, is still in progress, or is already resolved', async (t) => {
    const { state, instance } = startInstance(t);
    const resolve = (id: string) => instance.resolve({ ...given, id, outcome: 'happened' });
    assert.deepEqual(await resolve('nothing'), { kind: 'unknown' });
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    const [name = ''] = await instance.services.unresolvedIndex.list();
    assert.deepEqual(await resolve(name), { kind: 'unknown' });
    await claim.markInDoubt('no answer');
    assert.equal((await inDoubtWriteOf(state)).id, name);
    assert.deepEqual(await resolve(name), { kind: 'resolved' });
    assert.deepEqual(await resolve(name), { kind: 'unknown' });
    assert.equal(instance.auditEvents.length, 1);
  });

  test('is rejected if a later attempt with the same X-Request-ID is in doubt instead', async (t) => {
    const { time, state, instance } = startInstance(t);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    time.skip(lateAnswerMs + 10_000);
    await instance.resolve({ ...given, id, outcome: 'did-not-happen' });
    time.skip(1);
    await putInDoubt(instance);
    time.skip(lateAnswerMs + 10_000);
    const late = await instance.resolve({ ...given, id, outcome: 'did-not-happen' });
    assert.deepEqual(late, { kind: 'unknown' });
    assert.equal((await instance.lookUp()).kind, 'in-doubt');
  });

  test("is rejected if the bank's response arrives during the resolution", async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    const connection = {
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
    const resolved = await createInstance(connection).resolve({ ...given, id, outcome: 'happened' });
    assert.deepEqual(resolved, { kind: 'unknown' });
    assert.equal((await entryOf(state))?.step, 'answered');
  });
});

describe('a resolution', () => {
  test('is recorded in the audit log with operator, outcome and reason', async (t) => {
    const { state, instance } = startInstance(t);
    await putInDoubt(instance);
    const { id, entry } = await inDoubtWriteOf(state);
    await instance.resolve({ ...given, id, outcome: 'happened', paymentId: 'a-payment' });
    const { requestId, operation, tenant, environment } = entry;
    assert.deepEqual(instance.auditEvents, [
      {
        who: given.who,
        outcome: 'happened',
        requestId,
        operation,
        tenant,
        environment,
        paymentId: 'a-payment',
        reason: given.reason,
      },
    ]);
  });

  test('succeeds even if the index of unresolved writes cannot be updated, and the next scan updates the index', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    state.fail('remove');
    assert.deepEqual(await instance.resolve({ ...given, id, outcome: 'happened' }), { kind: 'resolved' });
    state.recover();
    assert.equal(await createInstance(state).services.inDoubt.scan(), 0);
    assert.deepEqual(await instance.services.unresolvedIndex.list(), []);
  });

  test('removes the write from the count of writes in doubt, even if the index is updated later', async (t) => {
    const time = useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    await instance.services.maintain();
    assert.equal(instance.inDoubtCount(), 1);

    time.skip(lateAnswerMs + 10_000);
    state.fail('remove');
    await instance.resolve({ ...given, id, outcome: 'did-not-happen' });
    state.recover();
    for (let call = 0; call < 5; call++) await instance.services.maintain();
    assert.equal(instance.inDoubtCount(), 0);
  });

  test('fails if the state is unavailable, and leaves the write in doubt', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    state.fail('replace');
    const failed = instance.resolve({ ...given, id, outcome: 'happened' });
    assert.equal(await errorCodeOf(failed), 'STATE_UNAVAILABLE');
    state.recover();
    assert.equal((await instance.services.inDoubt.all()).length, 1);
  });

  test('is recorded in the audit log also if the state does not answer, because it may have made the change', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    await putInDoubt(instance);
    const { id } = await inDoubtWriteOf(state);
    state.fail('replace');
    await assert.rejects(instance.resolve({ ...given, id, outcome: 'happened' }));
    const [event, ...others] = instance.auditEvents;
    assert.deepEqual(others, []);
    const { who, outcome, wanted, reason } = event ?? {};
    assert.deepEqual([who, outcome, wanted, reason], [given.who, 'failed', 'happened', given.reason]);
  });
});
