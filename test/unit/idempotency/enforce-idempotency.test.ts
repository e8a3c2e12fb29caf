import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { GatewayError, withAdvice } from '../../../src/request/errors.ts';
import { publicUrl } from '../../kit/gateway.ts';
import { bankResponse } from './bank-response.ts';
import { settleTasks } from './fake-time.ts';
import { errorCodeOf, lateAnswerMs, leaseMs, startInstance } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import { cancellation, initiation } from './requests.ts';

const created = bankResponse(201, '{"paymentId":"a-payment"}');
const { meaning: _, ...stored } = created;
const replayed = { ...stored, servedFrom: 'ledger' };

describe('the first request with an X-Request-ID', () => {
  test('is sent, and gets the response of the bank after the ledger has recorded it', async (t) => {
    const { instance, stepOf, paymentsWith } = await startInstance(t);
    const begun = await instance.begin();
    assert.equal(await stepOf(), 'sending');
    assert.deepEqual(await begun.respond(created), created);
    assert.equal(await stepOf(), 'answered');
    const recorded = instance.events.filter(({ what }) => what === 'recorded');
    assert.deepEqual(recorded, [{ what: 'recorded', as: 'answered' }]);
    assert.deepEqual(
      (await paymentsWith('a-payment')).map(({ tenant, environment }) => [tenant, environment]),
      [['shop', 'sandbox']],
    );
  });

  test('gets no response before the ledger has recorded it', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin();
    const unblock = instance.database.block('recordAnswer');
    let isAnswered = false;
    const response = begun.respond(created).then((answer) => {
      isAnswered = true;
      return answer;
    });
    await settleTasks();
    assert.equal(isAnswered, false);
    unblock();
    assert.deepEqual(await response, created);
  });

  test('is not sent before its mark is stored', async (t) => {
    const { instance, stepOf } = await startInstance(t);
    const unblock = instance.database.block('mark');
    const bank = createNextStage();
    const first = instance.send(initiation(), bank.next);
    await settleTasks();
    assert.deepEqual([bank.sentCount(), await stepOf()], [0, 'sending']);
    unblock();
    bank.respond(created);
    assert.deepEqual(await first, created);
  });

  test('is sent on a second connection if nothing has left on the first one', async (t) => {
    const { time, instance, rowOf } = await startInstance(t);
    const marks: unknown[] = [];
    const response = await instance.send(initiation(), async ({ writeAheadMark }) => {
      for (let connection = 0; connection < 2; connection++) {
        await writeAheadMark?.markSending('sandbox');
        marks.push((await rowOf())?.marked_at);
        time.skip(100);
      }
      return created;
    });
    assert.deepEqual(response, created);
    assert.equal(Number(marks[1]) - Number(marks[0]), 100);
    assert.equal(await instance.repeat(), '201 from ledger');
  });

  test('has a write-ahead mark that contains how long a late response is recorded, and whether an attempt was released', async (t) => {
    const { instance } = await startInstance(t);
    const [first, second] = [createNextStage(), createNextStage()];
    first.respond(bankResponse(429));
    await instance.send(initiation(), first.next);
    second.respond(created);
    await instance.send(initiation(), second.next);
    assert.deepEqual(
      [first, second].map(({ requests: [request] }) => [
        request?.writeAheadMark?.lateAnswerMs,
        request?.writeAheadMark?.followsReleasedAttempt,
      ]),
      [
        [lateAnswerMs, false],
        [lateAnswerMs, true],
      ],
    );
  });
});

describe('a request whose quota is being checked', () => {
  async function startRequest(t: TestContext) {
    const started = await startInstance(t);
    const quota = Promise.withResolvers<void>();
    const bank = createNextStage();
    bank.respond(created);
    const send = () => started.instance.send({ ...initiation(), quota: quota.promise }, bank.next);
    const refuse = () => quota.reject(new GatewayError('QUOTA_EXCEEDED', 'used up'));
    return { ...started, quota, bank, send, refuse };
  }

  test('claims its X-Request-ID, and is sent when it is admitted', async (t) => {
    const { stepOf, quota, bank, send } = await startRequest(t);
    const response = send();
    await settleTasks();
    assert.equal(await stepOf(), 'claimed');
    assert.equal(bank.sentCount(), 0);
    quota.resolve();
    assert.deepEqual(await response, created);
    assert.equal(bank.requests[0]?.quota, undefined);
  });

  test('releases its claim if it is refused, so that a repeat is sent', async (t) => {
    const { instance, stepOf, bank, send, refuse } = await startRequest(t);
    const response = send();
    await settleTasks();
    refuse();
    assert.equal(await errorCodeOf(response), 'QUOTA_EXCEEDED');
    assert.equal(await stepOf(), undefined);
    assert.equal(bank.sentCount(), 0);
    assert.deepEqual(await instance.send(initiation(), bank.next), created);
  });

  test('gets no stored response if it is refused, and the stored response stays', async (t) => {
    const { instance, bank, send, refuse } = await startRequest(t);
    await instance.send(initiation(), bank.next);
    refuse();
    assert.equal(await errorCodeOf(send()), 'QUOTA_EXCEEDED');
    assert.equal(await instance.repeat(), '201 from ledger');
  });

  test('gets QUOTA_EXCEEDED if its quota is used up and the ledger is unavailable', async (t) => {
    const { instance, send, refuse } = await startRequest(t);
    instance.database.fail('before');
    const response = send();
    await settleTasks(); // an unhandled rejection fails the test
    refuse();
    assert.equal(await errorCodeOf(response), 'QUOTA_EXCEEDED');
  });
});

describe('a tenant that has reached its storage limit', () => {
  test('sends nothing, and its request is sent by a repeat when there is room again', async (t) => {
    const started = await startInstance(t);
    let isFull = true;
    const counted: string[] = [];
    const storageBudget = {
      countEntry: (tenant: string) => void counted.push(tenant),
      check(tenant: string) {
        if (isFull && tenant === 'shop') throw new GatewayError('QUOTA_EXCEEDED', 'full');
      },
      refusedTenants: () => [],
    };
    const instance = await started.newInstance({ storageBudget });
    assert.equal(await instance.repeat(), 'QUOTA_EXCEEDED');
    assert.equal(await started.stepOf(), undefined);
    const other = await instance.begin(initiation({ tenant: 'rival' }));
    await other.respond(bankResponse(201, '{"paymentId":"of-the-rival"}'));
    isFull = false;
    const repeat = await instance.begin();
    assert.deepEqual(await repeat.respond(created), created);
    assert.deepEqual(counted, ['rival', 'shop']);
  });

  test('sends nothing that has waited in the queue until the limit was reached', async (t) => {
    const started = await startInstance(t);
    let checks = 0;
    const storageBudget = {
      countEntry: () => {},
      check() {
        if (++checks > 1) throw new GatewayError('QUOTA_EXCEEDED', 'full');
      },
      refusedTenants: () => [],
    };
    const instance = await started.newInstance({ storageBudget });
    const bank = createNextStage();
    assert.equal(await errorCodeOf(instance.send(initiation(), bank.next)), 'QUOTA_EXCEEDED');
    assert.deepEqual([bank.sentCount(), await started.stepOf()], [0, undefined]);
  });
});

describe('a repeat', () => {
  for (const status of [400, 403, 500, 503])
    test(`gets a stored response with status ${status}, and nothing is sent`, async (t) => {
      const { instance } = await startInstance(t);
      const begun = await instance.begin();
      assert.equal((await begun.respond(bankResponse(status))).status, status);
      assert.equal(await instance.repeat(), `${status} from ledger`);
    });

  test('gets the stored response on every instance, and nothing is sent', async (t) => {
    const { instance, newInstance } = await startInstance(t);
    const bank = createNextStage();
    bank.respond(created);
    await instance.send(initiation(), bank.next);
    for (const one of [instance, await newInstance()])
      assert.deepEqual(await one.send(initiation(), bank.next), replayed);
    assert.equal(bank.sentCount(), 1);
  });

  test('waits for the first request, and gets its response as soon as it is recorded', async (t) => {
    const { time, instance, newInstance } = await startInstance(t);
    const begun = await instance.begin();
    const other = await newInstance();
    const [onSame, onOther] = [instance, other].map((one) =>
      one.send(initiation(), () => assert.fail('it is sent')),
    );
    await settleTasks();
    await begun.respond(created);
    assert.deepEqual(await onSame, replayed);
    await time.advance(100);
    assert.deepEqual(await onOther, replayed);
  });

  test('sends the commands of later stages again with each claim, and releases its permit while it waits', async (t) => {
    const { time, instance, newInstance } = await startInstance(t);
    const begun = await instance.begin();
    const seen: string[] = [];
    const permit = { environment: 'sandbox', take: () => true, release: () => void seen.push('released') };
    const onClaim = () => void seen.push('claimed');
    const later = createNextStage();
    const other = await newInstance();
    const repeat = other.send({ ...initiation(), onClaim, permit }, later.next);
    await settleTasks();
    assert.deepEqual(seen, ['claimed', 'released']);
    await begun.respond(bankResponse(429));
    await time.advance(100);
    later.respond(created);
    assert.deepEqual(await repeat, created);
  });

  for (const [withinMs, untilMs] of [
    [10_000, 2_000],
    [700, 700],
  ] as const)
    test(`with a deadline of ${withinMs} ms is refused after ${untilMs} ms while the first request is running`, async (t) => {
      const { time, instance } = await startInstance(t);
      await instance.begin();
      let code: string | undefined;
      void instance.repeat(initiation({ withinMs })).then((given) => {
        code = given;
      });
      await settleTasks();
      await time.advance(untilMs - 1);
      assert.equal(code, undefined);
      await time.advance(201);
      assert.equal(code, 'DUPLICATE_IN_FLIGHT');
    });

  test('is refused if it has another body', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin();
    await begun.respond(created);
    assert.equal(await instance.repeat(initiation({ body: 'another' })), 'DUPLICATE_MISMATCH');
    assert.equal(await instance.repeat(), '201 from ledger');
  });

  test('is in doubt, and no mismatch, if it has another body while the outcome of the first request is unknown', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin();
    await begun.respond(bankResponse(504));
    assert.equal(await instance.repeat(initiation({ body: 'another' })), 'DUPLICATE_IN_DOUBT');
  });

  test('is refused with the advice not to initiate again if it has another payer', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin();
    await begun.respond(created);
    const headers = [
      ['Content-Type', 'application/json'],
      ['PSU-ID', 'berta'],
    ] as const;
    await assert.rejects(
      instance.send(initiation({ headers }), () => assert.fail('it is sent')),
      { code: 'DUPLICATE_MISMATCH', message: /PSU-ID.*Do not initiate again/ },
    );
  });

  test('is refused if the client may no longer use the environment of the stored response', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin();
    await begun.respond(created);
    assert.equal(
      await instance.repeat(initiation({ environments: ['production'] })),
      'ENVIRONMENT_FORBIDDEN',
    );
  });

  test('names the payment if an operator has resolved the first request as happened', async (t) => {
    const { instance, doubtIdOf } = await startInstance(t);
    await instance.putInDoubt();
    const resolution = { who: 'an operator', outcome: 'happened', reason: 'the bank said so' } as const;
    await instance.resolve({ ...resolution, id: await doubtIdOf(), paymentId: 'a-payment' });
    const repeat = instance.send(initiation(), () => assert.fail('it is sent'));
    await assert.rejects(repeat, (error: GatewayError) => {
      const url = `${publicUrl}/berlingroup/v1/payments/sepa-credit-transfers/a-payment`;
      assert.equal(error.code, 'DUPLICATE_IN_DOUBT');
      assert.deepEqual(error.executed, { payment: { id: 'a-payment', url } });
      assert.ok(!error.message.includes('a-payment'), 'the message is logged');
      const { message } = withAdvice(error, { name: 'initiatePayment', lane: 'write' });
      assert.ok(message.includes(`${url}/status`));
      assert.doesNotMatch(message, /may have executed|unknown/);
      return true;
    });
  });

  test('does not say that the outcome is unknown if an operator knows that it happened, but not which payment it is', async (t) => {
    const { instance, doubtIdOf } = await startInstance(t);
    await instance.putInDoubt();
    const resolution = { who: 'an operator', outcome: 'happened', reason: 'the bank said so' } as const;
    await instance.resolve({ ...resolution, id: await doubtIdOf() });
    const repeat = instance.send(initiation(), () => assert.fail('it is sent'));
    await assert.rejects(repeat, (error: GatewayError) => {
      const { message } = withAdvice(error, { name: 'initiatePayment', lane: 'write' });
      assert.match(message, /^The bank has executed .* ask the operators/);
      assert.doesNotMatch(message, /may have executed|unknown/);
      return true;
    });
  });

  test('of a cancellation sends nothing', async (t) => {
    const { instance } = await startInstance(t);
    const begun = await instance.begin(cancellation());
    await begun.respond(bankResponse(204));
    for (let time = 0; time < 2; time++)
      assert.equal(await instance.repeat(cancellation()), '204 from ledger');
  });
});

describe('a request of an instance that has ended', () => {
  test('is taken over if it was only claimed, and the suspended instance then sends nothing', async (t) => {
    const { time, instance, newInstance } = await startInstance(t);
    const connected = Promise.withResolvers<void>();
    const bank = createNextStage();
    const first = instance.send(initiation({ withinMs: 60_000 }), (request) =>
      connected.promise.then(() => bank.next(request)),
    );
    await settleTasks();
    time.skip(leaseMs);
    const other = await newInstance();
    const second = await other.begin();
    connected.resolve();
    assert.equal(await errorCodeOf(first), 'DUPLICATE_IN_FLIGHT');
    assert.deepEqual(await second.respond(created), created);
    assert.equal(bank.sentCount(), 0);
  });

  test('is in doubt if it was sent, and is never sent again', async (t) => {
    const { time, instance, newInstance, stepOf } = await startInstance(t);
    const late = await instance.begin();
    time.skip(leaseMs);
    const other = await newInstance();
    await other.services.maintain();
    assert.equal(await other.repeat(), 'DUPLICATE_IN_DOUBT');
    assert.deepEqual(other.logged, ['error: a payment is in doubt']);
    await other.services.maintain();
    assert.equal(other.services.inDoubt.count(), 1);
    assert.deepEqual(await late.respond(created), created, 'it was only suspended');
    assert.equal(await stepOf(), 'answered');
    assert.equal(await other.repeat(), '201 from ledger');
  });
});

describe('two tenants with the same X-Request-ID', () => {
  const [own, foreign] = [initiation(), initiation({ tenant: 'rival' })];

  test('each have their own payment', async (t) => {
    const { instance, paymentsWith } = await startInstance(t);
    for (const [request, paymentId] of [
      [own, 'payment-1'],
      [foreign, 'payment-2'],
    ] as const) {
      const begun = await instance.begin(request);
      assert.equal((await begun.respond(bankResponse(201, JSON.stringify({ paymentId })))).status, 201);
      assert.equal(await instance.repeat(request), '201 from ledger');
    }
    assert.equal((await paymentsWith('payment-2'))[0]?.tenant, 'rival');
  });

  test('do not get the payment of each other from a bank that recognises repeats by X-Request-ID alone', async (t) => {
    const { instance, stepOf, paymentsWith } = await startInstance(t);
    const begun = await instance.begin(own);
    await begun.respond(created);
    const second = await instance.begin(foreign);
    assert.equal(await errorCodeOf(second.respond(created)), 'OUTCOME_UNKNOWN');
    assert.equal(await stepOf(foreign), 'in-doubt');
    assert.equal(await instance.repeat(foreign), 'DUPLICATE_IN_DOUBT');
    assert.deepEqual(
      (await paymentsWith('a-payment')).map(({ tenant }) => tenant),
      ['shop'],
    );
  });
});
