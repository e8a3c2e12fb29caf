import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type ErrorCode, errorTable, GatewayError } from '../../../src/request/errors.ts';
import { bankResponse } from './bank-response.ts';
import { settleTasks } from './fake-time.ts';
import { errorCodeOf, startInstance } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { initiation } from './requests.ts';

const created = bankResponse(201, '{"paymentId":"a-payment"}');
const link = [['Location', 'v1/payments/sepa-credit-transfers/a-payment']] as const;

describe('an attempt that fails', () => {
  for (const [code, { reachedBank }] of Object.entries(errorTable) as [
    ErrorCode,
    (typeof errorTable)[ErrorCode],
  ][])
    test(`with ${code} after its mark is ${reachedBank === 'no' ? 'released' : 'in doubt'}`, async (t) => {
      const { instance, stepOf } = await startInstance(t);
      const begun = await instance.begin();
      assert.equal(await begun.fail(new GatewayError(code, 'failed')), code);
      assert.equal(await stepOf(), reachedBank === 'no' ? 'released' : 'in-doubt');
    });

  test('with an internal error is in doubt after its mark, and leaves nothing before', async (t) => {
    const { instance, stepOf } = await startInstance(t);
    await assert.rejects(
      instance.send(initiation(), async () => {
        throw new TypeError('a bug');
      }),
      TypeError,
    );
    assert.equal(await stepOf(), undefined);
    const bank = createNextStage();
    bank.fail(new TypeError('a bug'));
    await assert.rejects(instance.send(initiation(), bank.next), TypeError);
    assert.equal(await stepOf(), 'in-doubt');
  });

  for (const status of [429, 401])
    test(`with status ${status} of the bank is released, and a repeat is sent`, async (t) => {
      const { instance, stepOf } = await startInstance(t);
      const begun = await instance.begin();
      assert.equal((await begun.respond(bankResponse(status))).status, status);
      assert.equal(await stepOf(), 'released');
      const repeat = await instance.begin();
      assert.deepEqual(await repeat.respond(created), created);
    });

  test('with an answer that leaves the outcome open gets OUTCOME_UNKNOWN if the doubt cannot be stored: the bank has received it', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin();
    instance.database.fail('before', 'markInDoubt');
    const meaning = { outcome: 'in-doubt', paymentId: undefined, why: 'a web page' } as const;
    const open = { ...bankResponse(200), meaning };
    assert.equal(await errorCodeOf(begun.respond(open)), 'OUTCOME_UNKNOWN');
  });

  for (const [what, response] of [
    ['401 and a payment id', bankResponse(401, '{"paymentId":"a-payment"}')],
    ['401 and a Location', bankResponse(401, '', link)],
    ['429 and a payment id', bankResponse(429, '{"paymentId":"a-payment"}')],
    ['429 and a Location', bankResponse(429, '', link)],
  ] as const)
    test(`with status ${what} is replayed, because the bank may have made a payment`, async (t) => {
      const { instance } = await startInstance(t);
      const begun = await instance.begin();
      assert.equal((await begun.respond(response)).status, response.status);
      assert.equal(await instance.repeat(), `${response.status} from ledger`);
    });

  test('while it waits in the queue is released at its deadline, and is never in doubt', async (t) => {
    const { time, instance, stepOf } = await startInstance(t);
    const { promise, reject } = Promise.withResolvers<never>();
    const first = instance.send(initiation({ withinMs: 5_000 }), () => promise);
    await settleTasks();
    await time.advance(5_005);
    assert.equal(await stepOf(), 'claimed');
    reject(new GatewayError('QUEUE_TIMEOUT', 'no permit'));
    assert.equal(await errorCodeOf(first), 'QUEUE_TIMEOUT');
    assert.equal(await stepOf(), undefined);
  });
});

describe('an attempt without a response at the deadline', () => {
  /** A request with a deadline in five seconds. */
  async function sendOne(t: TestContext) {
    const started = await startInstance(t);
    const bank = createNextStage();
    let code: string | undefined;
    const first = errorCodeOf(started.instance.send(initiation({ withinMs: 5_000 }), bank.next));
    void first.then((given) => {
      code = given;
    });
    await bank.received;
    return { ...started, bank, first, code: () => code };
  }

  async function sendUntilDeadline(t: TestContext) {
    const started = await sendOne(t);
    await started.time.advance(5_005);
    assert.equal(await started.first, 'OUTCOME_UNKNOWN');
    return started;
  }

  test('is in doubt from the deadline on, when the TPP gets OUTCOME_UNKNOWN', async (t) => {
    const { time, stepOf, code } = await sendOne(t);
    await time.advance(4_999);
    assert.equal(code(), undefined);
    assert.equal(await stepOf(), 'sending');
    await time.advance(6);
    assert.equal(code(), 'OUTCOME_UNKNOWN');
    assert.equal(await stepOf(), 'in-doubt');
  });

  test('has its late response recorded as an event, and replayed to repeats', async (t) => {
    const { instance, bank } = await sendUntilDeadline(t);
    assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
    bank.respond(created);
    await settleTasks();
    assert.equal(await instance.repeat(), '201 from ledger');
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
    const late = instance.events.filter(({ what }) => what === 'late-answer');
    assert.deepEqual(late, [{ what: 'late-answer', status: 201 }]);
    assert.deepEqual(await instance.services.inDoubt.all(), []);
    assert.equal(bank.sentCount(), 1);
  });

  test('stays in doubt, with its first reason, if a late response does not say what the bank has done', async (t) => {
    const { instance, bank, rowOf } = await sendUntilDeadline(t);
    bank.respond(bankResponse(202, '{"paymentId":""}'));
    await settleTasks();
    assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
    assert.match(String((await rowOf())?.why), /^OUTCOME_UNKNOWN/);
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });

  for (const status of [429, 401])
    test(`is released by a late response with status ${status}`, async (t) => {
      const { bank, stepOf } = await sendUntilDeadline(t);
      bank.respond(bankResponse(status));
      await settleTasks();
      assert.equal(await stepOf(), 'released');
    });

  test('stays in doubt, and is logged once, if the connection breaks later', async (t) => {
    const { instance, bank, stepOf } = await sendUntilDeadline(t);
    bank.fail(new GatewayError('OUTCOME_UNKNOWN', 'it broke'));
    await settleTasks();
    assert.equal(await stepOf(), 'in-doubt');
    assert.deepEqual(instance.logged, ['error: a payment is in doubt']);
  });
});

describe('an outcome that the database does not accept', () => {
  for (const when of ['before', 'after'] as const)
    test(`is stored later (the statement fails ${when} it takes effect)`, async (t) => {
      const { instance, stepOf } = await startInstance(t);
      const begun = await instance.begin();
      instance.database.fail(when, 'recordAnswer', 'markInDoubt');
      assert.equal(await errorCodeOf(begun.respond(created)), 'OUTCOME_UNKNOWN');
      await instance.services.maintain();
      assert.equal(await stepOf(), when === 'before' ? 'sending' : 'answered');
      instance.database.recover();
      await instance.services.maintain();
      assert.equal(await stepOf(), 'answered');
      assert.equal(await instance.repeat(), '201 from ledger');
      assert.equal(instance.services.running.size, 0);
    });

  test('is not overwritten by the doubt of the deadline that the database accepts late', async (t) => {
    const { time, instance, stepOf } = await startInstance(t);
    const bank = createNextStage();
    const first = errorCodeOf(instance.send(initiation({ withinMs: 5_000 }), bank.next));
    await bank.received;
    instance.database.fail('before', 'markInDoubt');
    await time.advance(5_005);
    assert.equal(await first, 'OUTCOME_UNKNOWN');
    bank.respond(created);
    await settleTasks();
    instance.database.recover();
    await instance.services.maintain();
    assert.equal(await stepOf(), 'answered');
  });
});
