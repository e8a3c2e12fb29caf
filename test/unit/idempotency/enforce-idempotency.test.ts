import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ErrorCode, errorTable, GatewayError, withAdvice } from '../../../src/request/errors.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { publicUrl } from '../../kit/gateway.ts';
import { settleTasks } from './fake-time.ts';
import {
  bankResponse,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  instanceOn,
  lateAnswerMs,
  leaseMs,
  startInstance,
  useFakeTime,
} from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { cancellation, initiation, statusRead } from './requests.ts';

const made = bankResponse(201, '{"paymentId":"a-payment"}');

describe('the first request with an X-Request-ID', () => {
  test('is sent, and told what the bank says, when that is recorded', async (t) => {
    const { state, instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(made);
    assert.deepEqual(await instance.send(initiation(), behind.next), made);
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  test('is not told before it is recorded', async (t) => {
    useFakeTime(t);
    const way = createBlockingState();
    const behind = createNextStage();
    let isTold = false;
    const first = instanceOn(way).send(initiation(), behind.next);
    void first.then(() => {
      isTold = true;
    });
    await settleTasks();
    const record = way.block('replace');
    behind.respond(made);
    await settleTasks();
    assert.equal(isTold, false);
    record();
    assert.deepEqual(await first, made);
  });

  test('has its answer listened for beyond its deadline', async (t) => {
    const { instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(made);
    const request = initiation();
    await instance.send(request, behind.next);
    assert.equal(behind.requests[0]?.writeAheadMark?.lateAnswerUntilMs, request.deadlineAtMs + lateAnswerMs);
  });

  test('but that only reads passes by, and the state is not asked', async (t) => {
    const { state, instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(bankResponse(200));
    for (let read = 0; read < 2; read++) await instance.send(statusRead(), behind.next);
    assert.equal(behind.sentCount(), 2);
    assert.equal(behind.requests[0]?.writeAheadMark, undefined);
    assert.equal(await entryOf(state, statusRead()), undefined);
  });
});

describe('a repeat', () => {
  for (const status of [400, 403, 500, 503])
    test(`gets the bank's ${status} again, and nothing is sent`, async (t) => {
      const { instance } = startInstance(t);
      const behind = createNextStage();
      behind.respond(bankResponse(status));
      for (let time = 0; time < 2; time++)
        assert.equal((await instance.send(initiation(), behind.next)).status, status);
      assert.equal(behind.sentCount(), 1);
    });

  test('gets the same answer from the ledger on every instance, and nothing is sent', async (t) => {
    const { state, instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(made);
    await instance.send(initiation(), behind.next);
    for (const one of [instance, instanceOn(state)])
      assert.deepEqual(await one.send(initiation(), behind.next), { ...made, servedFrom: 'ledger' });
    assert.equal(behind.sentCount(), 1);
  });

  test('waits for the first one, and gets its answer as soon as it is there', async (t) => {
    const { state, instance } = startInstance(t);
    const behind = createNextStage();
    const first = instance.send(initiation(), behind.next);
    await settleTasks();
    const repeat = instanceOn(state).send(initiation(), behind.next);
    await settleTasks();
    behind.respond(made);
    await first;
    assert.deepEqual(await repeat, { ...made, servedFrom: 'ledger' });
    assert.equal(behind.sentCount(), 1);
  });

  for (const [withinMs, untilMs] of [
    [10_000, 2_000],
    [700, 700],
  ] as const)
    test(`that may take ${withinMs} ms is told after ${untilMs} ms that the first one is in flight`, async (t) => {
      const { clocks, instance } = startInstance(t);
      const behind = createNextStage();
      void instance.send(initiation(), behind.next);
      await settleTasks();
      let code: ErrorCode | undefined;
      instance.send(initiation({ withinMs }), behind.next).catch((error: GatewayError) => {
        code = error.code;
      });
      await clocks.advance(untilMs - 1);
      await settleTasks();
      assert.equal(code, undefined);
      await clocks.advance(201);
      await settleTasks();
      assert.equal(code, 'DUPLICATE_IN_FLIGHT');
    });

  test('with another body is refused', async (t) => {
    const { instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(made);
    await instance.send(initiation(), behind.next);
    const other = instance.send(initiation({ body: 'another' }), behind.next);
    assert.equal(await errorCodeOf(other), 'DUPLICATE_MISMATCH');
    assert.equal(behind.sentCount(), 1);
  });

  test('by a client that may not use that environment any more is refused, and sees nothing', async (t) => {
    const { instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(made);
    await instance.send(initiation(), behind.next);
    const repeat = instance.send(initiation({ environments: ['production'] }), behind.next);
    assert.equal(await errorCodeOf(repeat), 'ENVIRONMENT_FORBIDDEN');
  });

  test('of what was carried out without its answer being known is told which payment it is', async (t) => {
    const { state, instance } = startInstance(t);
    const behind = createNextStage();
    behind.fail(new GatewayError('OUTCOME_UNKNOWN', 'nobody knows'));
    await errorCodeOf(instance.send(initiation(), behind.next));
    const { id } = await inDoubtWriteOf(state);
    const resolution = { id, who: 'an operator', outcome: 'happened', reason: 'so says the bank' } as const;
    await instance.resolve({ ...resolution, paymentId: 'a-payment' });
    await assert.rejects(instance.send(initiation(), behind.next), (error: GatewayError) => {
      const where = `${publicUrl}/berlingroup/v1/payments/sepa-credit-transfers/a-payment/status`;
      return error.code === 'DUPLICATE_IN_DOUBT' && withAdvice(error, 'write').message.includes(where);
    });
    assert.equal(behind.sentCount(), 1);
  });
});

describe('a request that fails', () => {
  for (const [code, { reachedBank }] of Object.entries(errorTable) as [
    ErrorCode,
    (typeof errorTable)[ErrorCode],
  ][])
    test(`with ${code} behind the fence is ${reachedBank === 'no' ? 'free again' : 'in doubt'}`, async (t) => {
      const { state, instance } = startInstance(t);
      const behind = createNextStage();
      behind.fail(new GatewayError(code, 'failed'));
      assert.equal(await errorCodeOf(instance.send(initiation(), behind.next)), code);
      assert.equal((await entryOf(state))?.step, reachedBank === 'no' ? undefined : 'in-doubt');
    });

  test('by a fault of ours behind the fence is in doubt, and before it is free again', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await assert.rejects(
      instance.send(initiation(), async () => {
        throw new TypeError('a fault of ours');
      }),
      TypeError,
    );
    assert.equal(await entryOf(state), undefined);
    clocks.skip(1);
    const behind = createNextStage();
    behind.fail(new TypeError('a fault of ours'));
    await assert.rejects(instance.send(initiation(), behind.next), TypeError);
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });

  test('because the bank is too busy is free again: it has done nothing', async (t) => {
    const { state, instance } = startInstance(t);
    const behind = createNextStage();
    behind.respond(bankResponse(429));
    assert.equal((await instance.send(initiation(), behind.next)).status, 429);
    assert.equal(await entryOf(state), undefined);
  });

  test('because another instance has taken over leaves that one alone', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const { promise: turn, resolve: itIsTheTurn } = Promise.withResolvers<void>();
    const [behind, other] = [createNextStage(), createNextStage()];
    const first = instance.send(initiation({ withinMs: 60_000 }), (request) =>
      turn.then(() => behind.next(request)),
    );
    await settleTasks();
    clocks.skip(leaseMs);
    const second = instanceOn(state).send(initiation(), other.next);
    await settleTasks();
    itIsTheTurn();
    assert.equal(await errorCodeOf(first), 'DUPLICATE_IN_FLIGHT');
    other.respond(made);
    assert.deepEqual(await second, made);
    assert.deepEqual([behind.sentCount(), other.sentCount()], [0, 1]);
  });
});

test('a cancellation is guarded as an initiation is', async (t) => {
  const { instance } = startInstance(t);
  const behind = createNextStage();
  behind.respond(bankResponse(204));
  for (let repeat = 0; repeat < 3; repeat++) await instance.send(cancellation(), behind.next);
  assert.equal(behind.sentCount(), 1);
});

// MERGED HEADER (rewrite or remove):
/* A TPP is told by its deadline; the bank is listened to all the same. */

/** A request that was sent, and has until its deadline. */
function sentOne(t: Parameters<typeof startInstance>[0]) {
  const started = startInstance(t);
  const behind = createNextStage();
  let code: ErrorCode | undefined;
  const first = started.instance.send(initiation({ withinMs: 5_000 }), behind.next);
  first.catch((error: GatewayError) => {
    code = error.code;
  });
  return { ...started, behind, first, code: () => code };
}

describe('a request that the bank does not answer by the deadline', () => {
  test('is in doubt from then on, and not before; its TPP is told so then', async (t) => {
    const { clocks, state, code } = sentOne(t);
    await settleTasks();
    await clocks.advance(4_999);
    assert.equal(code(), undefined);
    assert.equal((await entryOf(state))?.step, 'sending');
    await clocks.advance(6);
    assert.equal(code(), 'OUTCOME_UNKNOWN');
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });

  test('is answered for repeats when the bank answers late, and the trail says so', async (t) => {
    const { clocks, instance, behind, first } = sentOne(t);
    await settleTasks();
    await clocks.advance(5_005);
    assert.equal(await errorCodeOf(first), 'OUTCOME_UNKNOWN');
    assert.equal(await errorCodeOf(instance.send(initiation(), behind.next)), 'DUPLICATE_IN_DOUBT');
    behind.respond(bankResponse(201, 'made'));
    await settleTasks();
    const repeat = await instance.send(initiation(), behind.next);
    assert.equal(repeat.body.toString(), 'made');
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
    const late = instance.events.filter(({ what }) => what === 'late-answer');
    assert.deepEqual(late, [{ what: 'late-answer', status: 201 }]);
    assert.deepEqual(await instance.services.inDoubt.all(), []);
    assert.equal(behind.sentCount(), 1);
  });

  test('is free again when the bank says late that it is too busy', async (t) => {
    const { clocks, state, behind } = sentOne(t);
    await settleTasks();
    await clocks.advance(5_005);
    behind.respond(bankResponse(429));
    await settleTasks();
    assert.equal(await entryOf(state), undefined);
  });

  test('stays in doubt when the connection breaks late', async (t) => {
    const { clocks, state, behind } = sentOne(t);
    await settleTasks();
    await clocks.advance(5_005);
    behind.fail(new GatewayError('OUTCOME_UNKNOWN', 'it broke'));
    await settleTasks();
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });
});

test('a request that waits for its turn at the deadline is not in doubt: it fails by itself, and is free again', async (t) => {
  const { clocks, state, instance } = startInstance(t);
  const { promise, reject } = Promise.withResolvers<never>();
  const first = instance.send(initiation({ withinMs: 5_000 }), () => promise);
  await settleTasks();
  await clocks.advance(5_005);
  assert.equal((await entryOf(state))?.step, 'claimed');
  reject(new GatewayError('QUEUE_TIMEOUT', 'its turn did not come'));
  assert.equal(await errorCodeOf(first), 'QUEUE_TIMEOUT');
  assert.equal(await entryOf(state), undefined);
});
