import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ErrorCode, GatewayError, kinds, withAdvice } from '../../../src/flow/errors.ts';
import { publicUrl } from '../../kit/gateway.ts';
import { createHeldState } from '../../kit/held-state.ts';
import {
  answer,
  codeOf,
  doubtOf,
  instanceOn,
  keptOf,
  lateAnswerMs,
  leaseMs,
  start,
  stopped,
} from './ledger.ts';
import { createBehind } from './line.ts';
import { cancellation, initiation, statusRead } from './requests.ts';
import { quiet } from './stopped-clocks.ts';

const made = answer(201, '{"paymentId":"a-payment"}');

describe('the first request with an X-Request-ID', () => {
  test('is sent, and told what the bank says, when that is recorded', async (t) => {
    const { state, instance } = start(t);
    const behind = createBehind();
    behind.answer(made);
    assert.deepEqual(await instance.ask(initiation(), behind.next), made);
    assert.equal((await keptOf(state))?.step, 'answered');
  });

  test('is not told before it is recorded', async (t) => {
    stopped(t);
    const way = createHeldState();
    const behind = createBehind();
    let isTold = false;
    const first = instanceOn(way).ask(initiation(), behind.next);
    void first.then(() => {
      isTold = true;
    });
    await quiet();
    const record = way.hold('replace');
    behind.answer(made);
    await quiet();
    assert.equal(isTold, false);
    record();
    assert.deepEqual(await first, made);
  });

  test('has its answer listened for beyond its deadline', async (t) => {
    const { instance } = start(t);
    const behind = createBehind();
    behind.answer(made);
    const request = initiation();
    await instance.ask(request, behind.next);
    assert.equal(behind.requests[0]?.fence?.listenUntilMs, request.deadlineAtMs + lateAnswerMs);
  });

  test('but that only reads passes by, and the state is not asked', async (t) => {
    const { state, instance } = start(t);
    const behind = createBehind();
    behind.answer(answer(200));
    for (let read = 0; read < 2; read++) await instance.ask(statusRead(), behind.next);
    assert.equal(behind.sent(), 2);
    assert.equal(behind.requests[0]?.fence, undefined);
    assert.equal(await keptOf(state, statusRead()), undefined);
  });
});

describe('a repeat', () => {
  for (const status of [400, 403, 500, 503])
    test(`gets the bank's ${status} again, and nothing is sent`, async (t) => {
      const { instance } = start(t);
      const behind = createBehind();
      behind.answer(answer(status));
      for (let time = 0; time < 2; time++)
        assert.equal((await instance.ask(initiation(), behind.next)).status, status);
      assert.equal(behind.sent(), 1);
    });

  test('gets the same answer from the ledger on every instance, and nothing is sent', async (t) => {
    const { state, instance } = start(t);
    const behind = createBehind();
    behind.answer(made);
    await instance.ask(initiation(), behind.next);
    for (const one of [instance, instanceOn(state)])
      assert.deepEqual(await one.ask(initiation(), behind.next), { ...made, servedFrom: 'ledger' });
    assert.equal(behind.sent(), 1);
  });

  test('waits for the first one, and gets its answer as soon as it is there', async (t) => {
    const { state, instance } = start(t);
    const behind = createBehind();
    const first = instance.ask(initiation(), behind.next);
    await quiet();
    const repeat = instanceOn(state).ask(initiation(), behind.next);
    await quiet();
    behind.answer(made);
    await first;
    assert.deepEqual(await repeat, { ...made, servedFrom: 'ledger' });
    assert.equal(behind.sent(), 1);
  });

  for (const [withinMs, untilMs] of [
    [10_000, 2_000],
    [700, 700],
  ] as const)
    test(`that may take ${withinMs} ms is told after ${untilMs} ms that the first one is in flight`, async (t) => {
      const { clocks, instance } = start(t);
      const behind = createBehind();
      void instance.ask(initiation(), behind.next);
      await quiet();
      let code: ErrorCode | undefined;
      instance.ask(initiation({ withinMs }), behind.next).catch((error: GatewayError) => {
        code = error.code;
      });
      await clocks.pass(untilMs - 1);
      await quiet();
      assert.equal(code, undefined);
      await clocks.pass(201);
      await quiet();
      assert.equal(code, 'DUPLICATE_IN_FLIGHT');
    });

  test('with another body is refused', async (t) => {
    const { instance } = start(t);
    const behind = createBehind();
    behind.answer(made);
    await instance.ask(initiation(), behind.next);
    const other = instance.ask(initiation({ body: 'another' }), behind.next);
    assert.equal(await codeOf(other), 'DUPLICATE_MISMATCH');
    assert.equal(behind.sent(), 1);
  });

  test('by a client that may not use that environment any more is refused, and sees nothing', async (t) => {
    const { instance } = start(t);
    const behind = createBehind();
    behind.answer(made);
    await instance.ask(initiation(), behind.next);
    const repeat = instance.ask(initiation({ environments: ['production'] }), behind.next);
    assert.equal(await codeOf(repeat), 'ENVIRONMENT_FORBIDDEN');
  });

  test('of what was carried out without its answer being known is told which payment it is', async (t) => {
    const { state, instance } = start(t);
    const behind = createBehind();
    behind.fail(new GatewayError('OUTCOME_UNKNOWN', 'nobody knows'));
    await codeOf(instance.ask(initiation(), behind.next));
    const { id } = await doubtOf(state);
    const resolution = { id, who: 'an operator', outcome: 'happened', reason: 'so says the bank' } as const;
    await instance.resolve({ ...resolution, paymentId: 'a-payment' });
    await assert.rejects(instance.ask(initiation(), behind.next), (error: GatewayError) => {
      const where = `${publicUrl}/berlingroup/v1/payments/sepa-credit-transfers/a-payment/status`;
      return error.code === 'DUPLICATE_IN_DOUBT' && withAdvice(error, 'write').message.includes(where);
    });
    assert.equal(behind.sent(), 1);
  });
});

describe('a request that fails', () => {
  for (const [code, { reached }] of Object.entries(kinds) as [ErrorCode, (typeof kinds)[ErrorCode]][])
    test(`with ${code} behind the fence is ${reached === 'no' ? 'free again' : 'in doubt'}`, async (t) => {
      const { state, instance } = start(t);
      const behind = createBehind();
      behind.fail(new GatewayError(code, 'failed'));
      assert.equal(await codeOf(instance.ask(initiation(), behind.next)), code);
      assert.equal((await keptOf(state))?.step, reached === 'no' ? undefined : 'in-doubt');
    });

  test('by a fault of ours behind the fence is in doubt, and before it is free again', async (t) => {
    const { clocks, state, instance } = start(t);
    await assert.rejects(
      instance.ask(initiation(), async () => {
        throw new TypeError('a fault of ours');
      }),
      TypeError,
    );
    assert.equal(await keptOf(state), undefined);
    clocks.spend(1);
    const behind = createBehind();
    behind.fail(new TypeError('a fault of ours'));
    await assert.rejects(instance.ask(initiation(), behind.next), TypeError);
    assert.equal((await keptOf(state))?.step, 'in-doubt');
  });

  test('because the bank is too busy is free again: it has done nothing', async (t) => {
    const { state, instance } = start(t);
    const behind = createBehind();
    behind.answer(answer(429));
    assert.equal((await instance.ask(initiation(), behind.next)).status, 429);
    assert.equal(await keptOf(state), undefined);
  });

  test('because another instance has taken over leaves that one alone', async (t) => {
    const { clocks, state, instance } = start(t);
    const { promise: turn, resolve: itIsTheTurn } = Promise.withResolvers<void>();
    const [behind, other] = [createBehind(), createBehind()];
    const first = instance.ask(initiation({ withinMs: 60_000 }), (request) =>
      turn.then(() => behind.next(request)),
    );
    await quiet();
    clocks.spend(leaseMs);
    const second = instanceOn(state).ask(initiation(), other.next);
    await quiet();
    itIsTheTurn();
    assert.equal(await codeOf(first), 'DUPLICATE_IN_FLIGHT');
    other.answer(made);
    assert.deepEqual(await second, made);
    assert.deepEqual([behind.sent(), other.sent()], [0, 1]);
  });
});

test('a cancellation is guarded as an initiation is', async (t) => {
  const { instance } = start(t);
  const behind = createBehind();
  behind.answer(answer(204));
  for (let repeat = 0; repeat < 3; repeat++) await instance.ask(cancellation(), behind.next);
  assert.equal(behind.sent(), 1);
});
