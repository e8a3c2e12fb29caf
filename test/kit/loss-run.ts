/** One run of a loss: payments are pending at the bank on several instances when their Redis loses writes. */

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { callAdminApi } from './admin-api.ts';
import type { GatewayProcess } from './gateway-process.ts';
import { type LossReport, type LossTimes, reportOn } from './loss-report.ts';
import {
  type Answer,
  type FleetInstance,
  initiationCounts,
  type Payment,
  type PaymentFleet,
  paidTwice,
  startLocalPaymentFleet,
  startPaymentFleet,
} from './payment-fleet.ts';
import { type LossyRedis, type RedisLoss, redisLosses } from './redis-losses.ts';
import { readState, watchState } from './state-reports.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

export interface LossRunOptions {
  readonly loss: RedisLoss;
  readonly instances: number;
  /** How many payments are pending at the bank when the writes are lost. */
  readonly payments: number;
  /** What happens to the first instance immediately before the loss; by default nothing. */
  readonly firstInstance?: FirstInstance;
  /** How long a paused instance is paused, in milliseconds. */
  readonly pauseMs?: number;
  /** Settings of `state` besides `redis`. */
  readonly state?: object;
  /** Whether the instances are in this process, which takes less CPU time, if none of them is paused or killed. */
  readonly isLocal?: boolean;
}

export type FirstInstance = 'runs' | 'is paused' | 'is killed' | 'is killed and restarted';

interface Run {
  readonly options: LossRunOptions;
  readonly redis: LossyRedis;
  readonly fleet: PaymentFleet;
  /** The process of the first instance, unless it is in this one. */
  readonly first: GatewayProcess | undefined;
  /** The instances that run during the loss, by index. */
  readonly present: readonly number[];
  readonly answered: readonly Payment[];
  readonly pending: readonly Payment[];
  readonly firstAttempts: Promise<unknown>;
}

/** Returns when new payments succeed on every instance, and all payments have been repeated on each of them. */
export async function runLoss(life: TestScope, options: LossRunOptions): Promise<LossReport> {
  const run = await startRun(life, options);
  const { fleet, present } = run;
  const watch = watchState(life, fleet.instances.filter(isPresentIn(present)));
  const newPayments = startNewPayments(life, fleet, present);
  const times = await loseWrites(run);

  const serving = options.firstInstance === 'is killed' ? present : fleet.instances.map((_, index) => index);
  await Promise.all(serving.map((instance) => untilPaymentsSucceed(fleet, instance)));
  const created = await newPayments.stop();
  await watch.stop();
  await run.firstAttempts;
  // After an operator has accepted that an instance is gone, TPP systems do not repeat its payments.
  const isKilled = options.firstInstance?.startsWith('is killed') ?? false;
  const repeatable = [...run.pending, ...run.answered, ...created].filter(
    ({ instance }) => instance > 0 || !isKilled,
  );
  const outcomes: string[] = [];
  for (const instance of serving) {
    outcomes.push(...(await inBatches(repeatable, (payment) => untilAnswered(fleet, payment, instance))));
  }
  const audit = await callAdminApi(fleet.instances[1] ?? assert.fail(), 'GET', '/api/audit');
  return reportOn(fleet, times, {
    lastOutcomes: outcomes,
    reports: watch.reports,
    audit: audit.text,
    killed: isKilled ? 0 : undefined,
  });
}

/** Sends half of the pending payments before the point from which writes will be lost, and half after it. */
async function startRun(life: TestScope, options: LossRunOptions): Promise<Run> {
  const { loss, payments, firstInstance = 'runs' } = options;
  const redis = await redisLosses[loss](life);
  const { fleet, first } = await startInstances(life, redis, options);
  const answered = fleet.newPayments(Math.ceil(payments / 10));
  await Promise.all(answered.map((payment) => untilAnswered(fleet, payment)));

  fleet.bank.injectFault({ name: 'latency', ms: 600_000 }, { operation: 'initiatePayment' });
  const kept = fleet.newPayments(Math.floor(payments / 2));
  const keptAttempts = await sendPending(fleet, kept);
  await redis.beginLostWrites();
  const lost = fleet.newPayments(payments - kept.length);
  const lostAttempts = await sendPending(fleet, lost);
  fleet.bank.clearFaults();
  return {
    options,
    redis,
    fleet,
    first,
    answered,
    pending: [...kept, ...lost],
    present: fleet.instances
      .map((_, index) => index)
      .filter((index) => index > 0 || firstInstance === 'runs'),
    firstAttempts: Promise.all([keptAttempts.ended, lostAttempts.ended]),
  };
}

async function startInstances(
  life: TestScope,
  { settings }: LossyRedis,
  { instances, firstInstance = 'runs', state = {}, isLocal = false }: LossRunOptions,
): Promise<Pick<Run, 'fleet' | 'first'>> {
  if (isLocal && firstInstance === 'runs')
    return { fleet: await startLocalPaymentFleet(life, settings, instances, { state }), first: undefined };
  const fleet = await startPaymentFleet(life, settings, instances, { state });
  return { fleet, first: fleet.instances[0] };
}

/** Returns when Redis is available again, and every instance that will serve has resumed or started again. */
async function loseWrites(run: Run): Promise<LossTimes> {
  const { redis, fleet, first, present, pending, answered, options } = run;
  const { firstInstance = 'runs', pauseMs = 10_000 } = options;
  const pausedAtMs = performance.now();
  if (firstInstance === 'is paused') first?.command.kill('SIGSTOP');
  if (firstInstance.startsWith('is killed')) await first?.stop('SIGKILL');
  const lossBeganAtMs = performance.now();
  const startedAgain = firstInstance === 'is killed and restarted' ? first?.start() : undefined;
  startedAgain?.catch(() => {}); // awaited below, unless the run fails before that
  await Promise.all([redis.lose(), repeat(fleet, pending, present)]);
  const lossEndedAtMs = performance.now();
  await repeat(fleet, [...pending, ...answered], present);
  if (firstInstance === 'runs') {
    const atNext = (payment: Payment) =>
      untilAnswered(fleet, payment, (payment.instance + 1) % fleet.instances.length);
    await inBatches(pending, atNext); // while the bank still has the first attempts
  }
  fleet.bank.endDelays();
  await repeat(fleet, pending, present);
  const twice = paidTwice(fleet.bank).length;
  assert.equal(twice, 0, `${twice} payments were made twice while the loss lasted`);

  let completeAtMs: number | undefined;
  if (firstInstance === 'is paused') {
    const whilePaused = pending.slice(0, 10).map((payment) => fleet.send(payment, 0));
    await until(pauseMs, 'the pause is over', () => performance.now() > pausedAtMs + pauseMs);
    completeAtMs = performance.now();
    first?.command.kill('SIGCONT');
    await Promise.all(whilePaused);
  }
  await startedAgain;
  if (firstInstance.startsWith('is killed')) {
    completeAtMs = await acceptLoss(fleet.instances[1] ?? assert.fail());
  }
  return { lossBeganAtMs, lossEndedAtMs, completeAtMs };
}

/** Sends payments, and returns when each is at the bank, or answered. */
async function sendPending(fleet: PaymentFleet, payments: readonly Payment[]) {
  const { bank, answers, send } = fleet;
  const ended = Promise.all(payments.map((payment) => send(payment)));
  await until(30_000, 'all payments are at the bank or answered', () => {
    const atBank = initiationCounts(bank);
    const answeredIds = new Set(answers.map(({ requestId }) => requestId));
    return payments.every(({ requestId }) => atBank.has(requestId) || answeredIds.has(requestId));
  });
  return { ended };
}

/** Repeats every payment at the instance of its first attempt and at the next one, as far as they are present. */
async function repeat(fleet: PaymentFleet, payments: readonly Payment[], present: readonly number[]) {
  const count = fleet.instances.length;
  await Promise.all(
    payments.flatMap((payment) =>
      [payment.instance, (payment.instance + 1) % count]
        .filter((instance) => present.includes(instance))
        .map((instance) => fleet.send(payment, instance)),
    ),
  );
}

/** Between two new payments at one instance, in milliseconds. */
const newPaymentEveryMs = 100;

/** Sends new payments to these instances until it is stopped; `stop` returns all that were sent. */
function startNewPayments(life: TestScope, fleet: PaymentFleet, instances: readonly number[]) {
  const created: Payment[] = [];
  const answers: Promise<unknown>[] = [];
  let isStopped = false;
  const send = async () => {
    while (!isStopped) {
      for (const instance of instances) {
        const payment = newPaymentAt(fleet, instance);
        created.push(payment);
        answers.push(fleet.send(payment));
      }
      await setTimeout(newPaymentEveryMs);
    }
  };
  const sending = send();
  const stop = async (): Promise<readonly Payment[]> => {
    isStopped = true;
    await sending;
    await Promise.all(answers);
    return created;
  };
  life.after(() => {
    isStopped = true;
  });
  return { stop };
}

/**
 * Calls a function for all values, a limited number of them at a time, but at first for one of them: while an instance refuses
 * everything, the repeats of many payments would only keep the machine busy.
 */
async function inBatches<Value, Result>(
  [first, ...others]: readonly Value[],
  act: (value: Value) => Promise<Result>,
): Promise<readonly Result[]> {
  if (first === undefined) return [];
  const results = [await act(first)];
  for (let from = 0; from < others.length; from += batchSize) {
    results.push(...(await Promise.all(others.slice(from, from + batchSize).map(act))));
  }
  return results;
}

const batchSize = 100;

const isRefused = (outcome: string) => /STATE_UNAVAILABLE|OVERLOADED/.test(outcome);

/** Repeats a payment until it is not refused. @returns its outcome */
async function untilAnswered(
  fleet: PaymentFleet,
  payment: Payment,
  instance = payment.instance,
): Promise<string> {
  let answer: Answer | undefined;
  const what = () => `instance ${instance} does not refuse the payment; its last answer: ${answer?.text}`;
  await until(20_000, what, async () => {
    answer = await fleet.send(payment, instance);
    return !isRefused(answer.outcome);
  });
  return answer?.outcome ?? assert.fail();
}

/** Waits until an instance executes a new payment. */
const untilPaymentsSucceed = async (fleet: PaymentFleet, instance: number): Promise<void> =>
  assert.equal(await untilAnswered(fleet, newPaymentAt(fleet, instance)), '201');

const newPaymentAt = (fleet: PaymentFleet, instance: number): Payment => ({
  requestId: fleet.newPayments(1)[0]?.requestId ?? assert.fail(),
  instance,
});

/** Accepts the loss as soon as an operator can see what is missing. @returns when: milliseconds of `performance.now()` */
async function acceptLoss(gateway: FleetInstance): Promise<number> {
  await until(20_000, 'the state reports what is missing', async () => {
    const report = await readState(gateway);
    return report?.status === 'lost' && (report.missing.length > 0 || report.uncovered);
  });
  const acceptedAtMs = performance.now();
  const body = { reason: 'the payments of the instance that is gone are resolved with the bank' };
  const reply = await callAdminApi(gateway, 'POST', '/api/state/accept-loss', body);
  assert.equal(reply.status, 200, reply.text);
  return acceptedAtMs;
}

const isPresentIn = (present: readonly number[]) => (_: unknown, index: number) => present.includes(index);
