/**
 * A random history of the ledger's table: instances that are killed, paused and continued, requests and repeats, a bank that answers late
 * or not at all, an operator, and a database that fails before or after a statement. Checks that the bank has paid once, that no outcome is
 * lost, and that nothing is left but what an operator has to decide.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { type Database, DatabaseError } from '../../src/store/database.ts';
import { createInstanceTable } from '../../src/store/instances.ts';
import {
  createLedgerTable,
  type LedgerAnswer,
  type NewClaim,
  type SentWrite,
} from '../../src/store/ledger.ts';

interface Instance {
  readonly id: string;
  isKilled: boolean;
  isPaused: boolean;
  /** How often it was paused. */
  pauses: number;
  readonly running: Set<string>;
  readonly ledger: ReturnType<typeof createLedgerTable>;
  readonly table: ReturnType<typeof createInstanceTable>;
}

/** The process of an instance has ended: its requests go on no more. */
class KilledError extends Error {}

const keys = 4;
const instanceCount = 3;
const steps = 60;

/** @param database migrated and empty @param random from 0 to below 1 */
export async function runLedgerHistory(database: Database, random: () => number): Promise<void> {
  const chance = (probability: number) => random() < probability;
  const pick = <Each>(from: readonly Each[]): Each => from[Math.floor(random() * from.length)] as Each;
  const requestIds = Array.from({ length: keys }, () => randomUUID());
  /** The payments that the bank has executed, by X-Request-ID. */
  const paid = new Map<string, string[]>();
  /** The attempts that may still be sent, unless their instance is paused: then the time for their answers passes. */
  const onTheWay = new Map<string, () => boolean>();
  const events: string[] = [];
  let isFailing = true;

  /** Fails before or after a statement. It is shared, as PostgreSQL is. */
  const unreliable: Database = {
    ...database,
    dialect: 'postgres',
    async batch(statement, rows) {
      for (let turns = Math.floor(random() * 4); turns > 0; turns--) await turn();
      const fault = isFailing ? random() : 1;
      if (fault < 0.04) throw new DatabaseError('cannot be reached', 'none');
      if (fault < 0.08) throw new DatabaseError('cut off before', 'unknown');
      const result = await database.batch(statement, rows);
      if (fault < 0.16) throw new DatabaseError('cut off after', 'unknown');
      return result;
    },
  };

  const startInstance = (): Instance => {
    const id = randomUUID();
    return {
      id,
      isKilled: false,
      isPaused: false,
      pauses: 0,
      running: new Set(),
      ledger: createLedgerTable(unreliable),
      table: createInstanceTable({ ...database, dialect: 'postgres' }, id),
    };
  };
  const instances = Array.from({ length: instanceCount }, startInstance);
  for (const { table } of instances) await table.report();

  async function addInstance(): Promise<Instance> {
    const next = startInstance();
    await next.table.report();
    instances.push(next);
    return next;
  }

  /** Other requests run in between, and the instance may be killed. */
  async function pass(instance: Instance): Promise<void> {
    for (let turns = Math.floor(random() * 5); turns > 0 || instance.isPaused; turns--) await turn();
    if (instance.isKilled) throw new KilledError();
  }

  /** Until the database has answered. */
  async function insist<Result>(instance: Instance, write: () => Promise<Result>): Promise<Result> {
    for (let triesLeft = 100; ; triesLeft--) {
      await pass(instance);
      try {
        return await write();
      } catch (thrown) {
        if (!(thrown instanceof DatabaseError) || triesLeft === 0) throw thrown;
      }
    }
  }

  async function request(instance: Instance, requestId: string): Promise<void> {
    const claim: NewClaim = {
      tenant: 'shop',
      operation: 'initiatePayment',
      payment: '',
      requestId: chance(0.5) ? requestId : requestId.toUpperCase(),
      attempt: randomUUID(),
      instance: instance.id,
      path: '/payments/sepa-credit-transfers',
      fingerprintKey: undefined,
      fingerprintRequest: 'request',
      fingerprintContent: 'content',
      isFirstFactor: false,
    };
    instance.running.add(claim.attempt);
    try {
      await execute(instance, claim);
    } catch (thrown) {
      if (!(thrown instanceof KilledError)) throw thrown;
    } finally {
      instance.running.delete(claim.attempt);
    }
  }

  async function execute(instance: Instance, claim: NewClaim): Promise<void> {
    const { ledger } = instance;
    const short = claim.attempt.slice(0, 4);
    const give = () => insist(instance, () => ledger.release(claim));
    const claimed = await ledger.claim(claim).catch(() => undefined);
    await pass(instance);
    if (!claimed) return give();
    if (claimed.kind !== 'claimed') return;
    events.push(`${short} claimed by ${instance.id.slice(0, 4)}`);
    const { pauses } = instance;
    const sent: SentWrite = { ...claim, environment: 'sandbox', listenMs: 0, markedAtMs: performance.now() };
    const mark = { ...sent, identityRevision: 0 };
    onTheWay.set(claim.attempt, () => instance.pauses === pauses);
    try {
      const isMarked = await ledger.mark(mark).catch(() => undefined);
      await pass(instance);
      if (isMarked === false) return;
      // The first byte leaves within a second of the mark, or not at all.
      if (isMarked === undefined || instance.pauses > pauses) return await give();
      await send(instance, sent);
    } finally {
      onTheWay.delete(claim.attempt);
    }
  }

  async function send(instance: Instance, sent: SentWrite): Promise<void> {
    const { ledger } = instance;
    const short = sent.attempt.slice(0, 4);
    const key = sent.requestId.toLowerCase();
    if (chance(0.2)) {
      events.push(`${short} not processed`);
      onTheWay.delete(sent.attempt);
      await insist(instance, () => ledger.release(sent));
      return;
    }
    const paymentId = randomUUID();
    const isExecuted = chance(0.8);
    if (isExecuted) paid.set(key, [...(paid.get(key) ?? []), paymentId]);
    events.push(`${short} sent, ${isExecuted ? 'paid' : 'lost'}`);
    onTheWay.delete(sent.attempt);
    await pass(instance);
    if (!isExecuted || chance(0.3)) {
      await insist(instance, () => ledger.markInDoubt(sent, { why: 'no answer' }));
      if (!isExecuted || chance(0.5)) return;
      await pass(instance);
    }
    const answer: LedgerAnswer = {
      status: 201,
      headers: '[]',
      body: Buffer.from(paymentId),
      outcome: 'accepted',
      why: undefined,
      created: { paymentId, initiatedAs: 'payments/sepa-credit-transfers', isPermanent: false },
    };
    const outcome = await insist(instance, () => ledger.recordAnswer(sent, answer));
    events.push(`${short} ${outcome}`);
    assert.notEqual(outcome, 'two-attempts');
    // An operator may have resolved it before; otherwise a repeat gets the answer.
    const row = await insist(instance, () => ledger.read(sent));
    assert.equal(row?.attempt, sent.attempt);
    assert.ok(row.step === 'happened' || row.payment_id === paymentId, 'the outcome is lost');
  }

  /** Asks the bank. */
  async function operate(instance: Instance): Promise<void> {
    const doubts = await instance.ledger.inDoubt(10);
    const doubt = doubts.find(({ attempt }) => !onTheWay.get(String(attempt))?.());
    if (!doubt) return;
    const key = String(doubt.request_id);
    const attempt = {
      ...{ tenant: 'shop', operation: 'initiatePayment', payment: '', requestId: key },
      attempt: String(doubt.attempt),
    };
    const [paymentId] = paid.get(key) ?? [];
    const created = paymentId && {
      paymentId,
      initiatedAs: 'payments/sepa-credit-transfers',
      isPermanent: false,
    };
    const resolve = () =>
      created
        ? instance.ledger.resolveHappened(attempt, created)
        : instance.ledger.resolveNotHappened(attempt);
    const isResolved = await resolve().catch(() => undefined);
    events.push(
      `${attempt.attempt.slice(0, 4)} resolved as ${created ? 'happened' : 'not happened'}: ${isResolved}`,
    );
  }

  const looksDead = ({ id }: Instance) =>
    database.query('UPDATE instance SET seen_at = seen_at - 10000 WHERE id = $1', [id]);
  const hasReportedForLong = ({ id }: Instance) =>
    database.query('UPDATE instance SET reporting_since = reporting_since - 10000 WHERE id = $1', [id]);

  async function recover(instance: Instance): Promise<void> {
    await instance.table.report();
    await hasReportedForLong(instance);
    await instance.table.recover((attempt) => instance.running.has(attempt));
  }

  const requests: Promise<void>[] = [];
  const failures: unknown[] = [];
  for (let step = 0; step < steps; step++) {
    const living = instances.filter(({ isKilled, isPaused }) => !isKilled && !isPaused);
    const instance = pick(living.length > 0 ? living : [await addInstance()]);
    const what = random();
    if (what < 0.6)
      requests.push(
        request(instance, pick(requestIds)).catch((thrown: unknown) => void failures.push(thrown)),
      );
    else if (what < 0.66) {
      events.push(`${instance.id.slice(0, 4)} killed`);
      Object.assign(instance, { isKilled: true, isPaused: false });
      await looksDead(instance);
      await addInstance();
    } else if (what < 0.74) {
      events.push(`${instance.id.slice(0, 4)} paused`);
      instance.pauses += 1;
      instance.isPaused = true;
      await looksDead(instance);
    } else if (what < 0.86) await recover(instance);
    else if (what < 0.94) await operate(instance);
    else await instance.table.report();
    for (const paused of instances) if (paused.isPaused && chance(0.1)) paused.isPaused = false;
    await turn();
  }
  for (const instance of instances) instance.isPaused = false;
  await Promise.all(requests);
  if (failures.length > 0) throw new AggregateError(failures, String(failures[0]));
  isFailing = false;
  for (const instance of instances) if (instance.isKilled) await looksDead(instance);
  const last = startInstance();
  await recover(last);
  for (const instance of instances) if (!instance.isKilled) await instance.table.recover(() => false);

  const story = `\n${events.join('\n')}\n`;
  for (const payments of paid.values()) assert.equal(payments.length, 1, `paid twice${story}`);
  for (const requestId of requestIds) {
    const key = { tenant: 'shop', operation: 'initiatePayment', payment: '', requestId };
    const row = await last.ledger.read(key);
    const payments = paid.get(requestId) ?? [];
    const allowed =
      payments.length > 0 ? ['answered', 'happened', 'in-doubt'] : ['released', 'in-doubt', undefined];
    assert.ok(allowed.includes(row?.step as string | undefined), `left in step ${row?.step}${story}`);
    if (row?.payment_id) assert.equal(row.payment_id, payments[0], story);
  }
}
