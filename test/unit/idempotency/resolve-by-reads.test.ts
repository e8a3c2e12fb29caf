import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { settleTasks } from './fake-time.ts';
import { bankResponse, createInstance, entryOf, errorCodeOf, leaseMs, startInstance } from './instance.ts';
import { createNextStage } from './next-stage.ts';
import {
  authorisationRead,
  authorisationUpdate,
  cancellation,
  initiation,
  paymentUpdate,
  statusRead,
} from './requests.ts';

/** A cancellation in doubt, which another instance than the holder's has found. */
async function startInDoubt(t: TestContext) {
  const { state, instance: holder } = startInstance(t);
  const claim = await holder.claim(cancellation());
  await claim.markSending('sandbox');
  await claim.markInDoubt('no answer');
  const instance = createInstance(state);
  await instance.services.inDoubt.scan();
  const read = async (
    response = bankResponse(200, '{"transactionStatus":"CANC"}'),
    request = statusRead(),
  ) => {
    assert.deepEqual(await instance.send(request, async () => response), response);
    await settleTasks();
    return (await entryOf(state, cancellation()))?.step;
  };
  return { state, holder, claim, instance, read };
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

  test('gets its late answer as before, until a read shows CANC', async (t) => {
    const { claim, holder, read, state } = await startInDoubt(t);
    assert.equal(await read(), 'happened');
    await claim.recordResponse(bankResponse(204));
    assert.equal((await entryOf(state, cancellation()))?.step, 'happened');
    assert.deepEqual(holder.logged, ['error: a payment is in doubt'], 'the late answer is no contradiction');
  });
});

test('an initiation in doubt is not resolved by a read that shows CANC', async (t) => {
  const { time, state, instance } = startInstance(t);
  const claim = await instance.claim();
  await claim.markSending('sandbox');
  time.skip(leaseMs);
  const other = createInstance(state);
  await other.services.inDoubt.scan();
  await other.send(statusRead(), async () => bankResponse(200, '{"transactionStatus":"CANC"}'));
  await settleTasks();
  assert.equal((await entryOf(state))?.step, 'in-doubt');
  assert.equal(await errorCodeOf(other.send(initiation(), createNextStage().next)), 'DUPLICATE_IN_DOUBT');
});

describe('an update in doubt', () => {
  const executed = bankResponse(200, '{"transactionStatus":"ACSC"}');
  const scaStatus = (status: string) => bankResponse(200, JSON.stringify({ scaStatus: status }));
  for (const [what, write, read, response, step] of [
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
    [
      'shows the payment as cancelled',
      authorisationUpdate,
      statusRead,
      bankResponse(200, '{"transactionStatus":"CANC"}'),
      'in-doubt',
    ],
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
      const { state, instance: holder } = startInstance(t);
      const claim = await holder.claim(write());
      await claim.markSending('sandbox');
      await claim.markInDoubt('no answer');
      const instance = createInstance(state);
      await instance.services.inDoubt.scan();
      await instance.send(read(), async () => response);
      await settleTasks();
      assert.equal((await entryOf(state, write()))?.step, step);
    });

  test('is a warning before the last step of the authorisation, and an error with a TAN or an unreadable body', async (t) => {
    const { instance } = startInstance(t);
    for (const body of [
      '{"psuData":{"password":"a"}}',
      '{"authenticationMethodId":"1"}',
      '{"scaAuthenticationData":"1"}',
      '{',
    ])
      await (async () => {
        const claim = await instance.claim(authorisationUpdate({ body, requestId: crypto.randomUUID() }));
        await claim.markSending('sandbox');
        await claim.markInDoubt('no answer');
      })();
    assert.deepEqual(instance.logged, [
      'warn: a step of an authorisation is in doubt',
      'warn: a step of an authorisation is in doubt',
      'error: a payment is in doubt',
      'error: a payment is in doubt',
    ]);
  });
});
