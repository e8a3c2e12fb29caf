import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { PisRequest } from '../../../src/request/messages.ts';
import { bankResponse } from './bank-response.ts';
import { settleTasks } from './fake-time.ts';
import { startInstance } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import {
  authorisationRead,
  authorisationUpdate,
  cancellation,
  initiation,
  paymentUpdate,
  statusRead,
} from './requests.ts';

/** A write in doubt, by default a cancellation, which another instance than the one that has sent it has found. */
async function startInDoubt(t: TestContext, write: PisRequest = cancellation()) {
  const { instance: sender, newInstance, stepOf } = await startInstance(t);
  const bank = createNextStage();
  const begun = sender.send(write, bank.next);
  begun.catch(() => {});
  await bank.received;
  bank.requests[0]?.writeAheadMark?.onDeadline(); // the call goes on
  await assert.rejects(begun, { code: 'OUTCOME_UNKNOWN' });
  const instance = await newInstance();
  await instance.services.inDoubt.refresh();
  const read = async (
    response = bankResponse(200, '{"transactionStatus":"CANC"}'),
    request = statusRead(),
  ) => {
    assert.deepEqual(await instance.send(request, async () => response), response);
    await settleTasks();
    return stepOf(write);
  };
  return { sender, bank, instance, read, stepOf };
}

describe('a cancellation in doubt', () => {
  test('is resolved by a read that shows CANC, and audited; a repeat then learns that the payment is cancelled', async (t) => {
    const { instance, read } = await startInDoubt(t);
    assert.equal(await read(), 'happened');
    const [{ who, outcome, reason } = {}] = instance.auditEvents;
    assert.deepEqual(
      { who, outcome, reason },
      { who: 'gateway', outcome: 'happened', reason: 'a read of the payment shows the status CANC' },
    );
    const repeat = instance.send(cancellation(), createNextStage().next);
    await assert.rejects(repeat, { code: 'DUPLICATE_IN_DOUBT', message: /^The payment is cancelled; / });
    assert.deepEqual(await instance.services.inDoubt.all(), []);
    await read();
    assert.equal(instance.auditEvents.length, 1);
  });

  for (const [what, response] of [
    ['another status', bankResponse(200, '{"transactionStatus":"ACTC"}')],
    ['an error', bankResponse(500, '{"transactionStatus":"CANC"}')],
    ['no status', bankResponse(200, 'CANC')],
    [
      'the payment of another environment',
      { ...bankResponse(200, '{"transactionStatus":"CANC"}'), environment: 'production' },
    ],
  ] as const)
    test(`stays in doubt if a read shows ${what}`, async (t) => {
      const { read } = await startInDoubt(t);
      assert.equal(await read(response), 'in-doubt');
    });

  test('stays as the read has shown it if its answer arrives later', async (t) => {
    const { bank, sender, read, stepOf } = await startInDoubt(t);
    assert.equal(await read(), 'happened');
    bank.respond(bankResponse(204));
    await settleTasks();
    assert.equal(await stepOf(cancellation()), 'happened');
    assert.deepEqual(sender.logged, ['error: a payment is in doubt'], 'the late answer is no contradiction');
  });
});

test('an initiation in doubt is not resolved by a read that shows CANC', async (t) => {
  const { instance, read } = await startInDoubt(t, initiation());
  assert.equal(await read(), 'in-doubt');
  assert.equal(await instance.repeat(), 'DUPLICATE_IN_DOUBT');
});

describe('an update in doubt', () => {
  const executed = bankResponse(200, '{"transactionStatus":"ACSC"}');
  const cancelled = bankResponse(200, '{"transactionStatus":"CANC"}');
  const scaStatus = (status: string) => bankResponse(200, JSON.stringify({ scaStatus: status }));
  for (const [what, write, request, response, step] of [
    [
      'shows its authorisation as finalised',
      authorisationUpdate,
      authorisationRead,
      scaStatus('finalised'),
      'happened',
    ],
    [
      'shows its authorisation as failed',
      authorisationUpdate,
      authorisationRead,
      scaStatus('failed'),
      'in-doubt',
    ],
    ['shows the payment as executed', authorisationUpdate, statusRead, executed, 'happened'],
    ['shows the payment as cancelled', authorisationUpdate, statusRead, cancelled, 'in-doubt'],
    ['shows its payment as executed', paymentUpdate, statusRead, executed, 'happened'],
    [
      'shows an authorisation as finalised',
      paymentUpdate,
      authorisationRead,
      scaStatus('finalised'),
      'in-doubt',
    ],
  ] as const)
    test(`(${write().operation.name}) is ${step} after a read that ${what}`, async (t) => {
      const { read } = await startInDoubt(t, write());
      assert.equal(await read(response, request()), step);
    });

  test('is a warning before the last step of the authorisation, and an error with a TAN or an unreadable body', async (t) => {
    const { instance } = await startInstance(t);
    for (const body of [
      '{"psuData":{"password":"a"}}',
      '{"authenticationMethodId":"1"}',
      '{"scaAuthenticationData":"1"}',
      '{',
    ])
      await instance.putInDoubt(authorisationUpdate({ body, requestId: randomUUID() }));
    assert.deepEqual(instance.logged, [
      'warn: a step of an authorisation is in doubt',
      'warn: a step of an authorisation is in doubt',
      'error: a payment is in doubt',
      'error: a payment is in doubt',
    ]);
  });
});
