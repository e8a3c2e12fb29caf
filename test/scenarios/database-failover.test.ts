/** PostgreSQL fails over to its standby while payments are on their way (ADR 122). */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  type FleetInstance,
  type Payment,
  type PaymentFleet,
  paidTwice,
  startLocalPaymentFleet,
  startPaymentFleet,
  startPayments,
} from '../kit/payment-fleet.ts';
import { promote, skipWithoutPostgres, startStandby } from '../kit/postgres.ts';
import { ask, type ReplicatedPostgres, startReplicatedPostgres } from '../kit/replicated-postgres.ts';
import { until } from '../kit/within.ts';

/** Longer than a failover, and than instances wait for each other after it. */
const maxRecoveryMs = 60_000;

const stateOn = ({ url }: ReplicatedPostgres) => ({ state: { postgres: url } });

/** Repeats a payment until its outcome is final. @param instance by default another one than before */
async function settle(
  fleet: PaymentFleet,
  payment: Payment,
  instance = (payment.instance + 1) % fleet.instances.length,
): Promise<string> {
  let last = '';
  await until(
    maxRecoveryMs,
    () => `a payment has a final outcome; the last one: ${last}`,
    async () => {
      last = (await fleet.send(payment, instance)).outcome;
      return !/no answer|STATE_UNAVAILABLE|IN_FLIGHT|OUTCOME_UNKNOWN/.test(last);
    },
  );
  return last;
}

async function readinessOf({ adminUrl }: FleetInstance): Promise<{ isReady: boolean; reasons: string }> {
  const response = await fetch(`${adminUrl}/health/ready`);
  return { isReady: response.ok, reasons: await response.text() };
}

const isReady = async (instance: FleetInstance) => (await readinessOf(instance)).isReady;

/** @returns milliseconds until a new payment succeeds */
async function untilPaid(fleet: PaymentFleet, instance: number): Promise<number> {
  const startedAtMs = performance.now();
  await until(maxRecoveryMs, 'a new payment succeeds', async () => {
    const [payment] = fleet.newPayments(1);
    return payment !== undefined && (await fleet.send(payment, instance)).outcome === '201';
  });
  return Math.round(performance.now() - startedAtMs);
}

/** Payments at a steady pace on all instances, of which some have been sent. */
async function startLoad(t: TestContext, fleet: PaymentFleet, count: number) {
  const load = startPayments(t, fleet);
  await load.hasSentMore(count);
  return load;
}

/** Repeats all payments that were sent, each on another instance than before: all succeed, and none is paid twice. @returns how many */
async function assertPaidOnce(fleet: PaymentFleet, postgres: ReplicatedPostgres): Promise<number> {
  const sent = new Map(fleet.answers.map((answer) => [answer.requestId, answer]));
  await assertSucceed(
    Array.from(sent.values(), (payment) => settle(fleet, payment)),
    fleet,
    postgres,
  );
  assert.deepEqual(paidTwice(fleet.bank), []);
  return sent.size;
}

async function assertSucceed(
  outcomes: readonly Promise<string>[],
  { answers }: PaymentFleet,
  { primary, standby }: ReplicatedPostgres,
): Promise<void> {
  const others = (await Promise.all(outcomes)).filter((each) => !each.startsWith('201'));
  if (others.length === 0) return;
  const inDoubt = `SELECT request_id, step, why, instance, environment, claimed_at, marked_at, listened_until, ended_at, now_ms() AS read_at
    FROM ledger WHERE why IS NOT NULL`;
  const lives = `SELECT i.id, i.seen_at, i.reporting_since, i.awaited_at, f.noticed_at FROM instance i, failover f`;
  const doubts = await ask(standby.url, inDoubt).catch(() => ask(primary.url, inDoubt));
  const instances = await ask(standby.url, lives).catch(() => ask(primary.url, lives));
  const ids = new Set(doubts.map(({ request_id }) => request_id));
  const given = answers.filter(({ requestId }) => ids.has(requestId));
  const nowMs = performance.now();
  assert.fail(
    `${others.join(', ')}; in doubt: ${JSON.stringify(doubts)}; answers: ${JSON.stringify(given)} until ${nowMs}; instances: ${JSON.stringify(instances)}`,
  );
}

/** So long before the standby gets no commits any more. Milliseconds. */
const lagMs = 300;

async function letStandbyLag({ stopSender }: ReplicatedPostgres): Promise<void> {
  await stopSender();
  const stoppedAtMs = performance.now();
  await until(10_000, 'the lag', () => performance.now() - stoppedAtMs >= lagMs);
}

describe('PostgreSQL with a synchronous standby', { skip: skipWithoutPostgres }, () => {
  test('fails over with 200 payments pending: none is paid twice, and no outcome is lost', async (t) => {
    const postgres = await startReplicatedPostgres(t, 'standby');
    const fleet = await startLocalPaymentFleet(t, null, 3, stateOn(postgres));
    const untilEndDelays = { name: 'latency', ms: 600_000, strikes: 'before-effect' } as const;
    fleet.bank.injectFault(untilEndDelays, { times: 200 });
    const payments = fleet.newPayments(200);
    const before = fleet.bank.payments.length;
    const received = fleet.bank.requests.length;
    const pending = payments.map((payment) => fleet.send(payment));
    await fleet.bank.waitUntil(() => fleet.bank.requests.length >= received + 200, 20_000);
    await until(20_000, 'all are marked', async () => {
      const [row] = await ask(
        postgres.primary.url,
        `SELECT count(*)::int AS sending FROM ledger WHERE step = 'sending'`,
      );
      return row?.sending === 200;
    });
    const promotion = postgres.failOver();
    fleet.bank.endDelays(); // the bank answers while the primary dies
    await promotion;
    const recoveryMs = await untilPaid(fleet, 0);
    t.diagnostic(`payments go on ${recoveryMs} ms after the promotion`);
    await Promise.all(pending);
    const outcomes = await Promise.all(payments.map((payment) => settle(fleet, payment)));
    assert.deepEqual(new Set(outcomes), new Set(['201 replayed']));
    assert.deepEqual(paidTwice(fleet.bank), []);
    const paid = new Set(fleet.bank.payments.slice(before).map(({ requestId }) => requestId));
    for (const { requestId } of payments) assert.ok(paid.has(requestId));
    for (const instance of fleet.instances)
      await until(maxRecoveryMs, 'each instance is ready', () => isReady(instance));
  });

  test('loses its standby and gets it back: payments are refused in between, and go on', async (t) => {
    const postgres = await startReplicatedPostgres(t, 'standby');
    const fleet = await startLocalPaymentFleet(t, null, 2, stateOn(postgres));
    const load = await startLoad(t, fleet, 50);
    await postgres.standby.kill();
    const [first = assert.fail()] = fleet.instances;
    await until(maxRecoveryMs, 'the reason is shown', async () =>
      (await readinessOf(first)).reasons.includes('no such standby is connected'),
    );
    const [refused = assert.fail()] = fleet.newPayments(1);
    const { outcome } = await fleet.send(refused);
    assert.equal(outcome, '503 STATE_UNAVAILABLE');
    await postgres.standby.restart();
    await untilPaid(fleet, 0);
    await load.stop();
    await assertPaidOnce(fleet, postgres);
  });

  test('says so when commits do not wait for a standby any more', async (t) => {
    const postgres = await startReplicatedPostgres(t, 'standby');
    const fleet = await startLocalPaymentFleet(t, null, 2, stateOn(postgres));
    const load = await startLoad(t, fleet, 10);
    const [first = assert.fail()] = fleet.instances;
    const metrics = async () => (await fetch(`${first.adminUrl}/metrics`)).text();
    await until(maxRecoveryMs, 'nothing is reported', async () => {
      const [{ reasons }, text] = [await readinessOf(first), await metrics()];
      return !/standby/.test(reasons) && !/penstock_database_warning\{.*standby.*\} 1/.test(text);
    });
    await postgres.setSynchronous('');
    await until(maxRecoveryMs, 'it is reported', async () => {
      const [{ isReady: ready, reasons }, text] = [await readinessOf(first), await metrics()];
      return (
        ready &&
        reasons.includes('synchronous_standby_names is empty') &&
        text.includes('penstock_database_warning{kind="no-synchronous-standby"} 1')
      );
    });
    await load.stop();
  });
});

describe('PostgreSQL with an asynchronous standby', { skip: skipWithoutPostgres, concurrency: 3 }, () => {
  test(`fails over ${lagMs} ms after the standby has received its last commit: the instances write back what it lacks`, async (t) => {
    const postgres = await startReplicatedPostgres(t, '');
    const fleet = await startLocalPaymentFleet(t, null, 3, stateOn(postgres));
    const load = await startLoad(t, fleet, 100);
    await letStandbyLag(postgres);
    const paid = fleet.answers.filter(({ outcome }) => outcome === '201');
    await postgres.failOver();
    // At once: the first one must not find an instance that has not written back.
    const repeats = paid.map((payment) => settle(fleet, payment));
    const recoveryMs = await untilPaid(fleet, 1);
    await load.stop();
    await assertSucceed(repeats, fleet, postgres);
    const sent = await assertPaidOnce(fleet, postgres);
    t.diagnostic(`${sent} payments; payments go on ${recoveryMs} ms after the promotion`);
    for (const instance of fleet.instances)
      await until(
        maxRecoveryMs,
        'no instance is missing',
        async () => !(await readinessOf(instance)).reasons.includes('did not write back'),
      );
  });

  test('fails over twice, to two standbys of which each begins the same timeline', async (t) => {
    const postgres = await startReplicatedPostgres(t, '');
    const second = await startStandby(t, postgres.primary, 'second');
    const url = postgres.url.replace(/,[^/]*/, (hosts) => `${hosts},${new URL(second.url).host}`);
    const fleet = await startLocalPaymentFleet(t, null, 2, { state: { postgres: url } });
    const load = await startLoad(t, fleet, 30);
    await postgres.failOver();
    await untilPaid(fleet, 1);
    await load.hasSentMore(30);
    await load.stop();
    await postgres.standby.kill();
    await promote(second);
    await untilPaid(fleet, 1);
    await assertPaidOnce(fleet, postgres);
  });

  test('fails over while an instance is killed: what only that one knew is reported', async (t) => {
    const postgres = await startReplicatedPostgres(t, '');
    const fleet = await startPaymentFleet(t, null, 3, stateOn(postgres));
    const [killed = assert.fail(), ...others] = fleet.instances;
    const load = await startLoad(t, fleet, 100);
    await letStandbyLag(postgres);
    killed.command.kill('SIGKILL');
    await postgres.failOver();
    const recoveryMs = await untilPaid(fleet, 1);
    await load.stop();
    for (const instance of others)
      await until(maxRecoveryMs, 'the loss is reported', async () =>
        (await readinessOf(instance)).reasons.includes('did not write back all that it had sent'),
      );
    const ofOthers = fleet.answers.filter(({ instance }) => instance !== 0);
    await assertSucceed(
      ofOthers.map((payment) => settle(fleet, payment, 3 - payment.instance)),
      fleet,
      postgres,
    );
    const known = new Set(ofOthers.map(({ requestId }) => requestId));
    assert.deepEqual(
      paidTwice(fleet.bank).filter((requestId) => known.has(requestId)),
      [],
    );
    const lost = fleet.answers.filter(({ instance, outcome }) => instance === 0 && outcome === '201');
    await Promise.all(lost.map((payment) => settle(fleet, payment, 1)));
    t.diagnostic(
      `payments go on ${recoveryMs} ms after the promotion; of ${lost.length} payments of the killed instance, ${paidTwice(fleet.bank).length} were lost and paid again`,
    );
  });
});
