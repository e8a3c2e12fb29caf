/** The idempotency stage while the state is unavailable, for both values of `idempotency.ifStateFails`. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayError } from '../../../src/request/errors.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { type FakeTime, settleTasks } from './fake-time.ts';
import { bankResponse, createInstance, entryOf, errorCodeOf, useFakeTime } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { initiation } from './requests.ts';

const warning = 'warn: sending a write without duplicate protection (idempotency.ifStateFails: allow)';

const startAllowing = () => {
  const state = createFailingState();
  return { state, instance: createInstance(state, { idempotency: { ifStateFails: 'allow' } }) };
};

describe('a write while the state is unavailable', () => {
  for (const operations of [['write'], ['writeIfAbsent'], ['replace'], ['add']] as const)
    test(`is not sent if ${operations} fails, and can be claimed again after the outage`, async (t) => {
      const time = useFakeTime(t);
      const state = createFailingState();
      const instance = createInstance(state);
      const bank = createNextStage();
      state.fail(...operations);
      assert.equal(await errorCodeOf(instance.send(initiation(), bank.next)), 'STATE_UNAVAILABLE');
      assert.equal(bank.sentCount(), 0);
      state.recover();
      await instance.services.pendingWrites.flush();
      time.skip(1);
      assert.equal(await entryOf(state), undefined);
      bank.respond(bankResponse(201));
      await instance.send(initiation(), bank.next);
      assert.equal(bank.sentCount(), 1);
    });

  test('gets the response of the bank; a repeat gets it at the same instance, and at another one when the state has stored it', async (t) => {
    const time = useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    const bank = createNextStage();
    const first = instance.send(initiation(), bank.next);
    await settleTasks();
    state.fail();
    bank.respond(bankResponse(201));
    assert.equal((await first).status, 201);
    assert.equal((await instance.send(initiation(), bank.next)).servedFrom, 'ledger');
    state.recover();
    const other = createInstance(state);
    assert.equal(await codeAfterWaiting(time, other.send(initiation(), bank.next)), 'DUPLICATE_IN_FLIGHT');
    await instance.services.maintain();
    assert.equal((await other.send(initiation(), bank.next)).servedFrom, 'ledger');
    assert.equal(bank.sentCount(), 1);
  });
});

describe('a write while the state is unavailable and ifStateFails is allow', () => {
  test('is sent without protection, and every write is logged', async (t) => {
    useFakeTime(t);
    const { state, instance } = startAllowing();
    const bank = createNextStage();
    bank.respond(bankResponse(201));
    state.fail();
    for (let payment = 0; payment < 2; payment++)
      assert.equal((await instance.send(initiation(), bank.next)).status, 201);
    assert.equal(bank.sentCount(), 2);
    assert.equal(bank.requests[0]?.writeAheadMark, undefined);
    assert.deepEqual(instance.logged, [warning, warning]);
  });

  test('continues if it was claimed before the outage, and its response is recorded after the outage', async (t) => {
    useFakeTime(t);
    const { state, instance } = startAllowing();
    const bank = createNextStage();
    bank.respond(bankResponse(201));
    await instance.services.lossGuard.verify();
    state.fail('replace', 'add');
    assert.equal((await instance.send(initiation(), bank.next)).status, 201);
    assert.deepEqual(instance.logged, [warning]);
    state.recover();
    await instance.services.pendingWrites.flush();
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  test('is listed if it is in doubt after the outage', async (t) => {
    useFakeTime(t);
    const { state, instance } = startAllowing();
    const bank = createNextStage();
    bank.fail(new Error('it broke'));
    await instance.services.lossGuard.verify();
    state.fail('replace', 'add');
    await assert.rejects(instance.send(initiation(), bank.next));
    state.recover();
    await instance.services.pendingWrites.flush();
    assert.equal((await instance.services.inDoubt.all()).length, 1);
  });

  test('is not sent if another instance has taken it over', async (t) => {
    const time = useFakeTime(t);
    const { state, instance } = startAllowing();
    const bank = createNextStage();
    const { promise: connected, resolve: connect } = Promise.withResolvers<void>();
    const first = instance.send(initiation(), (request) => connected.then(() => bank.next(request)));
    await settleTasks();
    time.skip(6_000);
    await createInstance(state).claim();
    connect();
    assert.equal(await errorCodeOf(first), 'DUPLICATE_IN_FLIGHT');
    assert.equal(bank.sentCount(), 0);
  });

  test('is not sent if it is a repeat of a running request', async (t) => {
    const time = useFakeTime(t);
    const { state, instance } = startAllowing();
    const bank = createNextStage();
    void instance.send(initiation(), bank.next);
    await settleTasks();
    state.fail();
    const repeat = instance.send(initiation(), bank.next);
    assert.equal(await codeAfterWaiting(time, repeat), 'DUPLICATE_IN_FLIGHT');
    assert.equal(bank.sentCount(), 1);
  });

  test('is not sent if it is a repeat of a running request of another instance, and only reads fail', async (t) => {
    const time = useFakeTime(t);
    const { state, instance } = startAllowing();
    const other = createInstance(state, { idempotency: { ifStateFails: 'allow' } });
    const bank = createNextStage();
    void instance.send(initiation(), bank.next);
    await settleTasks();
    await other.services.lossGuard.verify();
    state.fail('read');
    const repeat = other.send(initiation(), bank.next);
    assert.equal(await codeAfterWaiting(time, repeat), 'DUPLICATE_IN_FLIGHT');
    assert.equal(bank.sentCount(), 1);
  });
});

/** The error code of a repeat after its longest wait. */
async function codeAfterWaiting(time: FakeTime, repeat: Promise<unknown>): Promise<string | undefined> {
  let code: string | undefined;
  repeat.catch((error: GatewayError) => {
    code = error.code;
  });
  await settleTasks();
  await time.advance(3_000);
  return code;
}
