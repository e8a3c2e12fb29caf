import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { bankResponse } from './bank-response.ts';
import { settleTasks } from './fake-time.ts';
import { errorCodeOf, lateAnswerMs, startInstance, windowMs } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { cancellation, initiation } from './requests.ts';

const given = { who: 'an operator', reason: 'confirmed by the bank' } as const;

/** The deadline of a request is in ten seconds. */
const listenedMs = 10_000 + lateAnswerMs;

describe('a write in doubt in production', () => {
  async function startInProduction(t: TestContext) {
    const started = await startInstance(t);
    const { time, instance, doubtIdOf } = started;
    await instance.putInDoubt(initiation(), 'production');
    time.skip(listenedMs + 1);
    const id = await doubtIdOf();
    const resolve = (outcome: 'happened' | 'did-not-happen', confirm?: string) =>
      instance.resolve({ ...given, id, outcome, confirm });
    return { ...started, resolve };
  }

  test('is resolved as did-not-happen only with the name of the environment', async (t) => {
    const { instance, stepOf, resolve } = await startInProduction(t);
    for (const confirm of [undefined, '', 'sandbox', 'Production'])
      assert.deepEqual(await resolve('did-not-happen', confirm), {
        kind: 'unconfirmed',
        environment: 'production',
      });
    assert.equal(await stepOf(), 'in-doubt');
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

  test('is no longer in doubt, and its payment belongs to the tenant in the environment that it was sent to', async (t) => {
    const { instance, rowOf, doubtIdOf, paymentsWith } = await startInstance(t);
    await instance.putInDoubt();
    const resolved = await instance.resolve({
      ...given,
      id: await doubtIdOf(),
      outcome,
      paymentId: 'a-payment',
    });
    assert.deepEqual(resolved, { kind: 'resolved' });
    const row = await rowOf();
    assert.deepEqual([row?.step, row?.payment_id], ['happened', 'a-payment']);
    assert.deepEqual(await paymentsWith('a-payment'), [
      {
        tenant: 'shop',
        environment: 'sandbox',
        initiatedAs: 'payments/sepa-credit-transfers',
        isPermanent: false,
      },
    ]);
    assert.deepEqual(await instance.services.inDoubt.all(), []);
  });

  test('can be resolved while a late response may still arrive, and without a payment id', async (t) => {
    const { instance, doubtIdOf, database } = await startInstance(t);
    await instance.putInDoubt();
    assert.equal((await instance.resolve({ ...given, id: await doubtIdOf(), outcome })).kind, 'resolved');
    assert.deepEqual(await database.query('SELECT * FROM payment'), []);
    assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
  });

  test('stays in doubt if the operator names a payment of another tenant, which keeps it', async (t) => {
    const { instance, stepOf, doubtIdOf, paymentsWith } = await startInstance(t);
    const rival = await instance.begin(initiation({ tenant: 'rival', requestId: 'of-the-rival' }));
    await rival.respond(bankResponse(201, '{"paymentId":"foreign-payment"}'));
    await instance.putInDoubt();
    const resolution = { ...given, id: await doubtIdOf(), outcome, paymentId: 'foreign-payment' } as const;
    assert.deepEqual(await instance.resolve(resolution), { kind: 'foreign-payment' });
    assert.equal(await stepOf(), 'in-doubt');
    assert.deepEqual(
      (await paymentsWith('foreign-payment')).map(({ tenant }) => tenant),
      ['rival'],
    );
    assert.deepEqual(instance.auditEvents, []);
  });

  test('is remembered for ever if it initiates a periodic payment', async (t) => {
    const { instance, doubtIdOf, paymentsWith } = await startInstance(t);
    await instance.putInDoubt(initiation({ service: 'periodic-payments' }));
    await instance.resolve({ ...given, id: await doubtIdOf(), outcome, paymentId: 'an-order' });
    assert.deepEqual(
      (await paymentsWith('an-order')).map(({ initiatedAs, isPermanent }) => [initiatedAs, isPermanent]),
      [['periodic-payments/sepa-credit-transfers', true]],
    );
  });

  test('concerns the cancelled payment if it is a cancellation, even if the operator gives another id', async (t) => {
    const { instance, rowOf, doubtIdOf, paymentsWith } = await startInstance(t);
    await instance.putInDoubt(cancellation());
    const id = await doubtIdOf(cancellation());
    await instance.resolve({ ...given, id, outcome, paymentId: 'another' });
    const row = await rowOf(cancellation());
    assert.deepEqual([row?.payment, row?.payment_id], ['a-payment', null]);
    assert.deepEqual(await paymentsWith('another'), []);
  });

  test('remains stored for one idempotency window after its resolution', async (t) => {
    const { time, instance, stepOf, doubtIdOf } = await startInstance(t);
    const deleteExpired = async () => (await instance.services.table.deleteExpired(windowMs, 100)).rows;
    await instance.putInDoubt();
    time.skip(10 * windowMs);
    assert.equal(await deleteExpired(), 0, 'a doubt does not expire');
    await instance.resolve({ ...given, id: await doubtIdOf(), outcome });
    time.skip(windowMs);
    assert.equal(await deleteExpired(), 0);
    assert.equal(await stepOf(), 'happened');
    time.skip(1);
    assert.equal(await deleteExpired(), 1);
    assert.equal(await stepOf(), undefined);
  });

  test('is reported as happened to a repeat, instead of the stored 5xx response', async (t) => {
    const { instance, doubtIdOf } = await startInstance(t);
    const begun = await instance.begin();
    await begun.respond(bankResponse(504));
    assert.equal(await instance.repeat(), '504 from ledger');
    await instance.resolve({ ...given, id: await doubtIdOf(), outcome, paymentId: 'a-payment' });
    await assert.rejects(instance.send(initiation(), createNextStage().next), {
      code: 'DUPLICATE_IN_DOUBT',
      message: /^The bank has executed the first request/,
    });
  });
});

describe('a write in doubt that is resolved as did-not-happen', () => {
  const outcome = 'did-not-happen';

  test('can be resolved only after the time for late responses, and is then sent by a repeat', async (t) => {
    const { time, instance, doubtIdOf, stepOf } = await startInstance(t);
    await instance.putInDoubt();
    const id = await doubtIdOf();
    time.skip(listenedMs);
    assert.deepEqual(await instance.resolve({ ...given, id, outcome }), { kind: 'too-early', seconds: 1 });
    assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
    assert.deepEqual(instance.auditEvents, []);
    time.skip(1);
    assert.deepEqual(await instance.resolve({ ...given, id, outcome }), { kind: 'resolved' });
    assert.equal(await stepOf(), undefined);
    const again = await instance.begin();
    assert.equal((await again.respond(bankResponse(201, '{"paymentId":"a-payment"}'))).status, 201);
  });

  test('is too early to resolve, and the result contains the seconds until it can be resolved', async (t) => {
    const { time, instance, doubtIdOf } = await startInstance(t);
    await instance.putInDoubt();
    time.skip(500);
    const seconds = listenedMs / 1_000;
    const early = await instance.resolve({ ...given, id: await doubtIdOf(), outcome });
    assert.deepEqual(early, { kind: 'too-early', seconds });
  });

  test('can be a request with a stored 5xx response, also only after the time for late responses', async (t) => {
    const { time, instance, doubtIdOf } = await startInstance(t);
    const begun = await instance.begin();
    await begun.respond(bankResponse(503));
    const id = await doubtIdOf();
    assert.equal((await instance.resolve({ ...given, id, outcome })).kind, 'too-early');
    time.skip(listenedMs + 1);
    assert.equal((await instance.resolve({ ...given, id, outcome })).kind, 'resolved');
  });
});

describe('a resolution of an attempt that is not in doubt', () => {
  test('is rejected if the attempt does not exist, is still in progress, or is already resolved', async (t) => {
    const { instance, rowOf } = await startInstance(t);
    const resolve = (id: string) => instance.resolve({ ...given, id, outcome: 'happened' });
    assert.deepEqual(await resolve('nothing'), { kind: 'unknown' });
    const begun = await instance.begin();
    const id = String((await rowOf())?.attempt);
    assert.deepEqual(await resolve(id), { kind: 'unknown' });
    await begun.respond(bankResponse(504));
    assert.deepEqual(await resolve(id), { kind: 'resolved' });
    assert.deepEqual(await resolve(id), { kind: 'unknown' });
    assert.equal(instance.auditEvents.length, 1);
  });

  test('is rejected if a later attempt with the same X-Request-ID is in doubt instead', async (t) => {
    const { time, instance, doubtIdOf } = await startInstance(t);
    await instance.putInDoubt();
    const first = { ...given, id: await doubtIdOf(), outcome: 'did-not-happen' } as const;
    time.skip(listenedMs + 1);
    assert.equal((await instance.resolve(first)).kind, 'resolved');
    await instance.putInDoubt();
    time.skip(listenedMs + 1);
    assert.deepEqual(await instance.resolve(first), { kind: 'unknown' });
    assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
  });

  test("is rejected if the bank's response arrives during the resolution", async (t) => {
    const { instance, newInstance, stepOf, doubtIdOf } = await startInstance(t);
    const bank = createNextStage();
    const first = instance.send(initiation(), bank.next);
    first.catch(() => {});
    await bank.received;
    bank.requests[0]?.writeAheadMark?.onDeadline();
    assert.equal(await errorCodeOf(first), 'OUTCOME_UNKNOWN');
    const operator = await newInstance();
    const unblock = operator.database.block(/why IS NOT NULL AND attempt/);
    const resolving = operator.resolve({ ...given, id: await doubtIdOf(), outcome: 'happened' });
    await settleTasks();
    bank.respond(bankResponse(201, '{"paymentId":"a-payment"}'));
    await settleTasks();
    unblock();
    assert.deepEqual(await resolving, { kind: 'unknown' });
    assert.equal(await stepOf(), 'answered');
  });
});

describe('a resolution', () => {
  test('is recorded in the audit log with operator, outcome and reason', async (t) => {
    const { instance, doubtIdOf } = await startInstance(t);
    const request = initiation();
    await instance.putInDoubt(request);
    await instance.resolve({ ...given, id: await doubtIdOf(), outcome: 'happened', paymentId: 'a-payment' });
    assert.deepEqual(instance.auditEvents, [
      {
        who: given.who,
        outcome: 'happened',
        requestId: request.requestId,
        operation: 'initiatePayment',
        tenant: 'shop',
        environment: 'sandbox',
        paymentId: 'a-payment',
        reason: given.reason,
      },
    ]);
  });

  for (const outcome of ['happened', 'did-not-happen'] as const)
    test(`as ${outcome} removes the write from the count of writes in doubt`, async (t) => {
      const { time, instance, doubtIdOf } = await startInstance(t);
      const { inDoubt, maintain } = instance.services;
      await instance.putInDoubt();
      await maintain();
      assert.equal(inDoubt.count(), 1);
      time.skip(listenedMs + 1);
      await instance.resolve({ ...given, id: await doubtIdOf(), outcome });
      await maintain();
      assert.equal(inDoubt.count(), 0);
    });

  test('fails if the database is unavailable, and leaves the write in doubt', async (t) => {
    const { instance, doubtIdOf } = await startInstance(t);
    await instance.putInDoubt();
    const id = await doubtIdOf();
    instance.database.fail('before', 'resolveHappened');
    const failed = instance.resolve({ ...given, id, outcome: 'happened' });
    assert.equal(await errorCodeOf(failed), 'STATE_UNAVAILABLE');
    instance.database.recover();
    assert.equal((await instance.services.inDoubt.all()).length, 1);
  });

  test('is recorded in the audit log also if the database does not answer, because it may have made the change', async (t) => {
    const { instance, stepOf, doubtIdOf } = await startInstance(t);
    await instance.putInDoubt();
    const id = await doubtIdOf();
    instance.database.fail('after', 'resolveHappened');
    await assert.rejects(instance.resolve({ ...given, id, outcome: 'happened' }));
    assert.equal(await stepOf(), 'happened');
    const [event, ...others] = instance.auditEvents;
    assert.deepEqual(others, []);
    const { who, outcome, wanted, reason } = event ?? {};
    assert.deepEqual([who, outcome, wanted, reason], [given.who, 'failed', 'happened', given.reason]);
  });
});
