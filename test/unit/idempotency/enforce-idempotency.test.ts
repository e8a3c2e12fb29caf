import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type ErrorCode, errorTable, GatewayError, withAdvice } from '../../../src/request/errors.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { publicUrl } from '../../kit/gateway.ts';
import { settleTasks } from './fake-time.ts';
import {
  bankResponse,
  createInstance,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  lateAnswerMs,
  leaseMs,
  startInstance,
  useFakeTime,
} from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { cancellation, initiation } from './requests.ts';

const created = bankResponse(201, '{"paymentId":"a-payment"}');
const { meaning: _, ...stored } = created;
const replayed = { ...stored, servedFrom: 'ledger' };
const link = [['Location', 'v1/payments/sepa-credit-transfers/a-payment']] as const;

describe('the first request with an X-Request-ID', () => {
  test('is sent, and gets the response of the bank after the ledger recorded it', async (t) => {
    const { state, instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    assert.deepEqual(await instance.send(initiation(), bank.next), created);
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  test('gets no response before the ledger recorded it', async (t) => {
    useFakeTime(t);
    const connection = createBlockingState();
    const bank = createNextStage();
    let isAnswered = false;
    const first = createInstance(connection).send(initiation(), bank.next);
    void first.then(() => {
      isAnswered = true;
    });
    await settleTasks();
    const unblock = connection.block('replace');
    bank.respond(created);
    await settleTasks();
    assert.equal(isAnswered, false);
    unblock();
    assert.deepEqual(await first, created);
  });

  for (const isOwnerSet of [true, false])
    test(`has its response recorded once, ${isOwnerSet ? 'together with' : 'separately from'} the owner of its payment`, async (t) => {
      const { state, instance } = startInstance(t);
      const response = await instance.send(initiation(), async ({ writeAheadMark }) => {
        await writeAheadMark?.markSending('sandbox');
        writeAheadMark?.recordWithOwner(created, Promise.resolve(isOwnerSet));
        return created;
      });
      assert.deepEqual(response, created);
      assert.equal((await entryOf(state))?.step, 'answered');
      const recorded = instance.events.filter(({ what }) => what === 'recorded');
      assert.deepEqual(recorded, [{ what: 'recorded', as: 'answered' }]);
    });

  test('has a write-ahead mark that contains how long a late response is recorded', async (t) => {
    const { instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    const request = initiation();
    await instance.send(request, bank.next);
    assert.equal(bank.requests[0]?.writeAheadMark?.lateAnswerMs, lateAnswerMs);
  });
});

describe('a request whose quota is being checked', () => {
  const startRequest = (t: TestContext, request = initiation()) => {
    const started = startInstance(t);
    const quota = Promise.withResolvers<void>();
    const bank = createNextStage();
    bank.respond(created);
    const send = () => started.instance.send({ ...request, quota: quota.promise }, bank.next);
    const refuse = () => quota.reject(new GatewayError('QUOTA_EXCEEDED', 'used up'));
    return { ...started, quota, bank, send, refuse };
  };

  test('claims its X-Request-ID, and is sent when it is admitted', async (t) => {
    const { state, quota, bank, send } = startRequest(t);
    const response = send();
    await settleTasks();
    assert.equal((await entryOf(state))?.step, 'claimed');
    assert.equal(bank.sentCount(), 0);
    quota.resolve();
    assert.deepEqual(await response, created);
    assert.equal(bank.requests[0]?.quota, undefined);
  });

  test('releases its claim if it is refused, so that a repeat is sent', async (t) => {
    const { state, instance, bank, send, refuse } = startRequest(t);
    const response = send();
    await settleTasks();
    refuse();
    assert.equal(await errorCodeOf(response), 'QUOTA_EXCEEDED');
    assert.equal(await entryOf(state), undefined);
    assert.equal(bank.sentCount(), 0);
    assert.deepEqual(await instance.send(initiation(), bank.next), created);
  });

  test('gets no stored response if it is refused, and the stored response stays', async (t) => {
    const { instance, bank, send, refuse } = startRequest(t);
    await instance.send(initiation(), bank.next);
    refuse();
    assert.equal(await errorCodeOf(send()), 'QUOTA_EXCEEDED');
    assert.equal((await instance.send(initiation(), bank.next)).servedFrom, 'ledger');
  });

  test('gets QUOTA_EXCEEDED if its quota is used up and the ledger is unavailable', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    state.fail();
    const quota = Promise.withResolvers<void>();
    const request = { ...initiation(), quota: quota.promise };
    const response = instance.send(request, () => assert.fail('it is sent'));
    await settleTasks(); // an unhandled rejection fails the test
    quota.reject(new GatewayError('QUOTA_EXCEEDED', 'used up'));
    assert.equal(await errorCodeOf(response), 'QUOTA_EXCEEDED');
  });
});

describe('a repeat', () => {
  for (const status of [400, 403, 500, 503])
    test(`gets a stored response with status ${status}, and nothing is sent`, async (t) => {
      const { instance } = startInstance(t);
      const bank = createNextStage();
      bank.respond(bankResponse(status));
      for (let time = 0; time < 2; time++)
        assert.equal((await instance.send(initiation(), bank.next)).status, status);
      assert.equal(bank.sentCount(), 1);
    });

  test('gets the stored response on every instance, and nothing is sent', async (t) => {
    const { state, instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    await instance.send(initiation(), bank.next);
    for (const one of [instance, createInstance(state)])
      assert.deepEqual(await one.send(initiation(), bank.next), replayed);
    assert.equal(bank.sentCount(), 1);
  });

  test('waits for the first request, and gets its response as soon as it is recorded', async (t) => {
    const { state, instance } = startInstance(t);
    const bank = createNextStage();
    const first = instance.send(initiation(), bank.next);
    await settleTasks();
    const repeat = createInstance(state).send(initiation(), bank.next);
    await settleTasks();
    bank.respond(created);
    await first;
    assert.deepEqual(await repeat, replayed);
    assert.equal(bank.sentCount(), 1);
  });

  test('sends the commands of later stages again with each claim, and releases its permit while it waits', async (t) => {
    const { state, instance } = startInstance(t);
    const [bank, later] = [createNextStage(), createNextStage()];
    const first = instance.send(initiation(), bank.next);
    await settleTasks();
    const seen: string[] = [];
    const permit = { environment: 'sandbox', take: () => true, release: () => void seen.push('released') };
    const onClaim = () => void seen.push('claimed');
    const repeat = createInstance(state).send({ ...initiation(), onClaim, permit }, later.next);
    await settleTasks();
    assert.deepEqual(seen, ['claimed', 'released']);
    bank.respond(bankResponse(429, ''));
    await first;
    later.respond(created);
    assert.deepEqual(await repeat, created);
    assert.deepEqual(seen, ['claimed', 'released', 'claimed']);
  });

  test('of a request of the same instance is answered from memory, without a claim', async (t) => {
    const { instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    await instance.send(initiation(), bank.next);
    const onClaim = () => assert.fail('it is answered from memory');
    assert.equal((await instance.send({ ...initiation(), onClaim }, bank.next)).servedFrom, 'ledger');
  });

  for (const [withinMs, untilMs] of [
    [10_000, 2_000],
    [700, 700],
  ] as const)
    test(`with a deadline of ${withinMs} ms is refused after ${untilMs} ms while the first request is running`, async (t) => {
      const { time, instance } = startInstance(t);
      const bank = createNextStage();
      void instance.send(initiation(), bank.next);
      await settleTasks();
      let code: ErrorCode | undefined;
      instance.send(initiation({ withinMs }), bank.next).catch((error: GatewayError) => {
        code = error.code;
      });
      await time.advance(untilMs - 1);
      await settleTasks();
      assert.equal(code, undefined);
      await time.advance(201);
      await settleTasks();
      assert.equal(code, 'DUPLICATE_IN_FLIGHT');
    });

  test('is refused if it has another body', async (t) => {
    const { instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    await instance.send(initiation(), bank.next);
    const other = instance.send(initiation({ body: 'another' }), bank.next);
    assert.equal(await errorCodeOf(other), 'DUPLICATE_MISMATCH');
    assert.equal(bank.sentCount(), 1);
  });

  test('is refused with the advice not to initiate again if it has another payer', async (t) => {
    const { instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    await instance.send(initiation(), bank.next);
    const headers = [
      ['Content-Type', 'application/json'],
      ['PSU-ID', 'berta'],
    ] as const;
    await assert.rejects(instance.send(initiation({ headers }), bank.next), (error: GatewayError) => {
      assert.equal(error.code, 'DUPLICATE_MISMATCH');
      assert.match(error.message, /PSU-ID.*Do not initiate again/);
      return true;
    });
    assert.equal(bank.sentCount(), 1);
  });

  test('is refused if the client may no longer use the environment of the stored response', async (t) => {
    const { instance } = startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    await instance.send(initiation(), bank.next);
    const repeat = instance.send(initiation({ environments: ['production'] }), bank.next);
    assert.equal(await errorCodeOf(repeat), 'ENVIRONMENT_FORBIDDEN');
  });

  test('names the payment if an operator resolved the first request as happened', async (t) => {
    const { state, instance } = startInstance(t);
    const bank = createNextStage();
    bank.fail(new GatewayError('OUTCOME_UNKNOWN', 'no response'));
    await errorCodeOf(instance.send(initiation(), bank.next));
    const { id } = await inDoubtWriteOf(state);
    const resolution = { id, who: 'an operator', outcome: 'happened', reason: 'the bank said so' } as const;
    await instance.resolve({ ...resolution, paymentId: 'a-payment' });
    await assert.rejects(instance.send(initiation(), bank.next), (error: GatewayError) => {
      const where = `${publicUrl}/berlingroup/v1/payments/sepa-credit-transfers/a-payment/status`;
      return error.code === 'DUPLICATE_IN_DOUBT' && withAdvice(error, 'write').message.includes(where);
    });
    assert.equal(bank.sentCount(), 1);
  });
});

describe('a request that fails', () => {
  for (const [code, { reachedBank }] of Object.entries(errorTable) as [
    ErrorCode,
    (typeof errorTable)[ErrorCode],
  ][])
    test(`with ${code} after markSending is ${reachedBank === 'no' ? 'released' : 'in doubt'}`, async (t) => {
      const { state, instance } = startInstance(t);
      const bank = createNextStage();
      bank.fail(new GatewayError(code, 'failed'));
      assert.equal(await errorCodeOf(instance.send(initiation(), bank.next)), code);
      assert.equal((await entryOf(state))?.step, reachedBank === 'no' ? undefined : 'in-doubt');
    });

  test('with an internal error is in doubt after markSending, and released before', async (t) => {
    const { time, state, instance } = startInstance(t);
    await assert.rejects(
      instance.send(initiation(), async () => {
        throw new TypeError('a bug');
      }),
      TypeError,
    );
    assert.equal(await entryOf(state), undefined);
    time.skip(1);
    const bank = createNextStage();
    bank.fail(new TypeError('a bug'));
    await assert.rejects(instance.send(initiation(), bank.next), TypeError);
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });

  for (const status of [429, 401])
    test(`with status ${status} of the bank is released`, async (t) => {
      const { state, instance } = startInstance(t);
      const bank = createNextStage();
      bank.respond(bankResponse(status));
      assert.equal((await instance.send(initiation(), bank.next)).status, status);
      assert.equal(await entryOf(state), undefined);
    });

  for (const [what, response] of [
    ['401 and a payment id', bankResponse(401, '{"paymentId":"a-payment"}')],
    ['401 and a Location', bankResponse(401, '', link)],
    ['429 and a payment id', bankResponse(429, '{"paymentId":"a-payment"}')],
    ['429 and a Location', bankResponse(429, '', link)],
  ] as const)
    test(`with status ${what} is replayed, because the bank may have made a payment`, async (t) => {
      const { instance } = startInstance(t);
      const bank = createNextStage();
      bank.respond(response);
      for (let time = 0; time < 2; time++)
        assert.equal((await instance.send(initiation(), bank.next)).status, response.status);
      assert.equal(bank.sentCount(), 1);
    });

  test('because another instance took it over leaves that instance alone', async (t) => {
    const { time, state, instance } = startInstance(t);
    const { promise: connected, resolve: connect } = Promise.withResolvers<void>();
    const [bank, other] = [createNextStage(), createNextStage()];
    const first = instance.send(initiation({ withinMs: 60_000 }), (request) =>
      connected.then(() => bank.next(request)),
    );
    await settleTasks();
    time.skip(leaseMs);
    const second = createInstance(state).send(initiation(), other.next);
    await settleTasks();
    connect();
    assert.equal(await errorCodeOf(first), 'DUPLICATE_IN_FLIGHT');
    other.respond(created);
    assert.deepEqual(await second, created);
    assert.deepEqual([bank.sentCount(), other.sentCount()], [0, 1]);
  });
});

test('a repeated cancellation is sent once', async (t) => {
  const { instance } = startInstance(t);
  const bank = createNextStage();
  bank.respond(bankResponse(204));
  for (let repeat = 0; repeat < 3; repeat++) await instance.send(cancellation(), bank.next);
  assert.equal(bank.sentCount(), 1);
});

/** Sends a request with a deadline in five seconds. */
function sendOne(t: Parameters<typeof startInstance>[0]) {
  const started = startInstance(t);
  const bank = createNextStage();
  let code: ErrorCode | undefined;
  const first = started.instance.send(initiation({ withinMs: 5_000 }), bank.next);
  first.catch((error: GatewayError) => {
    code = error.code;
  });
  return { ...started, bank, first, code: () => code };
}

describe('a request without a response at the deadline', () => {
  test('is in doubt from the deadline on, when the TPP gets OUTCOME_UNKNOWN', async (t) => {
    const { time, state, code } = sendOne(t);
    await settleTasks();
    await time.advance(4_999);
    assert.equal(code(), undefined);
    assert.equal((await entryOf(state))?.step, 'sending');
    await time.advance(6);
    assert.equal(code(), 'OUTCOME_UNKNOWN');
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });

  test('has its late response recorded as an event and replayed to repeats', async (t) => {
    const { time, instance, bank, first } = sendOne(t);
    await settleTasks();
    await time.advance(5_005);
    assert.equal(await errorCodeOf(first), 'OUTCOME_UNKNOWN');
    assert.equal(await errorCodeOf(instance.send(initiation(), bank.next)), 'DUPLICATE_IN_DOUBT');
    bank.respond(bankResponse(201, 'created'));
    await settleTasks();
    const repeat = await instance.send(initiation(), bank.next);
    assert.equal(repeat.body.toString(), 'created');
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
    const late = instance.events.filter(({ what }) => what === 'late-answer');
    assert.deepEqual(late, [{ what: 'late-answer', status: 201 }]);
    assert.deepEqual(await instance.services.inDoubt.all(), []);
    assert.equal(bank.sentCount(), 1);
  });

  test('stays in doubt, with its first reason, if a late response does not say what the bank has done', async (t) => {
    const { time, state, instance, bank, first } = sendOne(t);
    await settleTasks();
    await time.advance(5_005);
    assert.equal(await errorCodeOf(first), 'OUTCOME_UNKNOWN');
    bank.respond(bankResponse(202, '{"paymentId":""}'));
    await settleTasks();
    assert.equal(await errorCodeOf(instance.send(initiation(), bank.next)), 'DUPLICATE_IN_DOUBT');
    assert.match((await inDoubtWriteOf(state)).entry.why, /^OUTCOME_UNKNOWN/);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
    assert.equal(bank.sentCount(), 1);
  });

  for (const status of [429, 401])
    test(`is released by a late response with status ${status}`, async (t) => {
      const { time, state, bank } = sendOne(t);
      await settleTasks();
      await time.advance(5_005);
      bank.respond(bankResponse(status));
      await settleTasks();
      assert.equal(await entryOf(state), undefined);
    });

  test('stays in doubt if the connection breaks later', async (t) => {
    const { time, state, bank } = sendOne(t);
    await settleTasks();
    await time.advance(5_005);
    bank.fail(new GatewayError('OUTCOME_UNKNOWN', 'it broke'));
    await settleTasks();
    assert.equal((await entryOf(state))?.step, 'in-doubt');
  });
});

test('a request that is still queued at the deadline fails there, is released, and is never in doubt', async (t) => {
  const { time, state, instance } = startInstance(t);
  const { promise, reject } = Promise.withResolvers<never>();
  const first = instance.send(initiation({ withinMs: 5_000 }), () => promise);
  await settleTasks();
  await time.advance(5_005);
  assert.equal((await entryOf(state))?.step, 'claimed');
  reject(new GatewayError('QUEUE_TIMEOUT', 'no permit'));
  assert.equal(await errorCodeOf(first), 'QUEUE_TIMEOUT');
  assert.equal(await entryOf(state), undefined);
});
