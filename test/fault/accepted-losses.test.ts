/** A loss of the shared state is accepted while an instance is slow: it still knows its payments, and they must not be paid again. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { initiationCounts, type PaymentFleet, paidTwice, startPaymentFleet } from '../kit/payment-fleet.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { readState } from '../kit/state-reports.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

describe('payments of an instance that is slow when Redis is flushed are made once', {
  skip: skipWithoutRedisServer,
}, () => {
  test('if state.afterLoss is resume', async (t) => {
    await flushWhileSlow(t, 'resume', async () => {});
  });

  test('if an operator accepts the loss at once', async (t) => {
    await flushWhileSlow(t, 'refuse', async ({ instances: [first] }) => {
      const reply =
        first && (await callAdminApi(first, 'POST', '/api/state/accept-loss', { reason: 'a script' }));
      assert.equal(reply?.status, 200);
      assert.match(reply.text, /"status":"lost".*the loss is accepted/);
    });
  });
});

describe('an instance that continues after an operator accepted that it is gone', {
  skip: skipWithoutRedisServer,
}, () => {
  test('sends a payment only when the others wait for it after another loss', async (t) => {
    const redis = await startRedis(t);
    const fleet = await startPaymentFleet(t, redis.url, 2);
    await untilPaymentsSucceed(fleet);
    const [remaining, returning] = [fleet.instances[0] ?? assert.fail(), fleet.instances[1] ?? assert.fail()];
    returning.command.kill('SIGSTOP');
    await redis.flush();
    await callAdminApi(remaining, 'POST', '/api/state/accept-loss', { reason: 'it does not return' });
    await until(20_000, 'the remaining instance accepts new payments', async () => {
      const [payment] = fleet.newPayments(1);
      return payment !== undefined && (await fleet.send(payment, 0)).outcome === '201';
    });

    fleet.bank.injectFault({ name: 'latency', ms: 600_000 }, { operation: 'initiatePayment' });
    const { requestId } = fleet.newPayments(1)[0] ?? assert.fail();
    const payment = { requestId, instance: 1 };
    const isAtBank = () => initiationCounts(fleet.bank).has(requestId);
    returning.command.kill('SIGCONT');
    const first = until(20_000, 'the payment is not refused', async () => {
      const { outcome } = await fleet.send(payment);
      return outcome !== '503 STATE_UNAVAILABLE' || isAtBank();
    });
    await until(20_000, 'the payment is at the bank', isAtBank);
    returning.command.kill('SIGSTOP');
    await redis.flush();
    fleet.bank.clearFaults();
    await until(5_000, 'the remaining instance waits for the other one', async () => {
      const report = await readState(remaining);
      return report?.status === 'lost' && report.missing.length === 1;
    });
    returning.command.kill('SIGCONT');
    await untilPaymentsSucceed(fleet);
    fleet.bank.endDelays();
    await first;
    assert.deepEqual(paidTwice(fleet.bank), []);
  });
});

async function flushWhileSlow(
  t: TestScope,
  afterLoss: 'refuse' | 'resume',
  accept: (fleet: PaymentFleet) => Promise<void>,
): Promise<void> {
  const redis = await startRedis(t);
  const fleet = await startPaymentFleet(t, redis.url, 2, { state: { afterLoss } });
  await untilPaymentsSucceed(fleet);
  const pending = await sendPending(fleet, 20);
  const slow = fleet.instances[1] ?? assert.fail();
  slow.command.kill('SIGSTOP');
  await redis.flush();
  await accept(fleet);
  await Promise.all(pending.payments.map((payment) => fleet.send(payment, 0)));
  assert.deepEqual(paidTwice(fleet.bank), [], 'before the slow instance has registered');
  slow.command.kill('SIGCONT');
  await untilPaymentsSucceed(fleet);
  await Promise.all(pending.payments.map((payment) => fleet.send(payment, 1 - payment.instance)));
  fleet.bank.endDelays();
  await pending.ended;
  assert.deepEqual(paidTwice(fleet.bank), []);
}

const untilPaymentsSucceed = (fleet: PaymentFleet) =>
  until(20_000, 'both instances accept new payments', async () => {
    const created = await Promise.all(fleet.newPayments(2).map((payment) => fleet.send(payment)));
    return created.every(({ outcome }) => outcome === '201');
  });

/** Sends payments that the bank does not answer yet, and returns when it has received all of them. */
async function sendPending(fleet: PaymentFleet, count: number) {
  fleet.bank.injectFault({ name: 'latency', ms: 600_000 }, { operation: 'initiatePayment' });
  const payments = fleet.newPayments(count);
  const ended = Promise.all(payments.map((payment) => fleet.send(payment)));
  await until(20_000, 'all payments are at the bank', () => {
    const atBank = initiationCounts(fleet.bank);
    return payments.every(({ requestId }) => atBank.has(requestId));
  });
  fleet.bank.clearFaults();
  return { payments, ended };
}
