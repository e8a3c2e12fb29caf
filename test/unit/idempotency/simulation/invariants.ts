/** What must hold at every moment of a simulation, and what must hold after it has come to rest. */

import assert from 'node:assert/strict';
import { isInDoubt, type LedgerEntry } from '../../../../src/idempotency/ledger-entry.ts';
import { attemptName, createLedgerStore } from '../../../../src/idempotency/ledger-store.ts';
import { errorTable } from '../../../../src/request/errors.ts';
import { windowMs } from '../instance.ts';
import type { Payment, TppCall } from './fake-bank.ts';
import { requestKey, type Simulation, type TppResponse } from './simulation.ts';

export async function checkInvariants(simulation: Simulation): Promise<void> {
  assert.deepEqual(simulation.failures, []);
  checkPaidOnce(simulation.bank.payments);
  for (const response of simulation.responses) checkIsTrue(response, simulation.bank.payments);
  for (const { id, entry } of await readEntries(simulation))
    if (
      (isInDoubt(entry) && !isHolderAlive(simulation, entry)) ||
      (entry.step === 'sending' && wasSent(simulation, entry))
    )
      assert.ok(
        simulation.indexed.has(attemptName(id, entry.attempt)),
        `an entry with step ${entry.step} is in the index`,
      );
}

function checkPaidOnce(payments: readonly Payment[]): void {
  for (const [key, same] of Map.groupBy(payments, ({ call }) => requestKey(call)))
    same.reduce((one, next) => {
      assert.ok(next.madeAt - one.madeAt >= windowMs, `${key} was paid twice`);
      return next;
    });
}

function checkIsTrue({ call, status, code, text }: TppResponse, payments: readonly Payment[]): void {
  if (code === undefined && status < 300) {
    const payment = payments.find(({ paymentId }) => paymentId === JSON.parse(text).paymentId);
    assert.ok(payment, 'a successful response names a payment');
    assert.deepEqual([requestKey(payment.call), payment.call.body], [requestKey(call), call.body]);
  }
  if (code !== undefined && errorTable[code].reachedBank === 'no')
    assert.equal(call.sentAt, undefined, `${code} means that nothing was sent`);
}

/** All entries that can be read. */
async function readEntries({
  state,
  ids,
}: Simulation): Promise<readonly { id: string; entry: LedgerEntry }[]> {
  const store = createLedgerStore(state.keyValues);
  const all = await Promise.all(
    [...ids].map(async (id) => {
      return { id, entry: (await store.read(id))?.entry };
    }),
  );
  return all.flatMap(({ id, entry }) => (entry ? [{ id, entry }] : []));
}

/** A live holder may just be restoring a lost entry, and adds its name to the index afterwards. */
const isHolderAlive = ({ instances }: Simulation, entry: LedgerEntry): boolean =>
  instances.some(
    ({ services, process }) => services.instanceLeases.ownId === entry.holder && !process.isDead(),
  );

const wasSent = ({ calls }: Simulation, { attempt }: LedgerEntry): boolean =>
  calls.some((call) => call.attempt === attempt && call.sentAt !== undefined);

/** Resumes all instances, repairs the state, and lets time pass until nothing is left to do. */
export async function runToQuiescence(simulation: Simulation): Promise<void> {
  for (const { state, process } of simulation.instances) {
    state.recover();
    process.resume();
  }
  for (const ms of [8_000, 200_000, 8_000]) await simulation.advance(ms);
}

export async function checkQuiescentState(simulation: Simulation): Promise<void> {
  await checkInvariants(simulation);
  for (const { entry } of await readEntries(simulation))
    if (entry.step === 'sending') await repeatUnsent(simulation, entry);
  await simulation.advance(8_000);
  const entries = await readEntries(simulation);
  for (const { entry } of entries)
    assert.ok(entry.step !== 'claimed' && entry.step !== 'sending', 'no entry is claimed or sending');
  for (const { id, entry } of entries)
    assert.ok(
      !isInDoubt(entry) || simulation.indexed.has(attemptName(id, entry.attempt)),
      'every entry in doubt is in the index',
    );
  const inDoubt = entries.filter(({ entry }) => isInDoubt(entry)).map(({ entry }) => requestKey(entry));
  await checkListsAreComplete(simulation, inDoubt);

  for (const { call, paymentId } of withinWindow(simulation.bank.payments, ({ madeAt }) => madeAt)) {
    const { text } = await repeat(simulation, call);
    assert.ok(text.includes(paymentId) || inDoubt.includes(requestKey(call)), `a repeat gets: ${text}`);
  }
  for (const call of withinWindow(simulation.calls, ({ sentAt = 0 }) => sentAt)) {
    if (call.receivedStatus === undefined || call.receivedStatus === 429 || call.process.isDead()) continue;
    if (simulation.resolved.has(requestKey(call))) continue;
    const { status } = await repeat(simulation, call);
    assert.equal(status, call.receivedStatus, 'a repeat gets the response that a live instance received');
  }
  await checkInvariants(simulation);
}

/**
 * Repeats a request whose instance died before it sent the first byte: its name may be missing in the index, so that
 * only a repeat resolves its entry.
 */
async function repeatUnsent(simulation: Simulation, entry: LedgerEntry): Promise<void> {
  assert.ok(!wasSent(simulation, entry), 'a scan finds every request that was sent');
  const same = simulation.calls.filter((call) => requestKey(call) === requestKey(entry));
  for (const call of same) await repeat(simulation, call);
}

async function checkListsAreComplete(simulation: Simulation, inDoubt: readonly string[]): Promise<void> {
  for (const { services } of simulation.instances) {
    const all = services.inDoubt.all();
    await simulation.scheduler.runAll();
    assert.deepEqual((await all).map(({ entry }) => requestKey(entry)).toSorted(), inDoubt.toSorted());
  }
  await simulation.advance(8_000);
  for (const { inDoubtCount } of simulation.instances)
    assert.equal(inDoubtCount(), inDoubt.length, 'every write in doubt is counted');
}

/** Sends the same request again, which must not reach the bank. */
async function repeat(simulation: Simulation, { tenant, requestId, body }: TppCall): Promise<TppResponse> {
  const repeated = simulation.send(simulation.instance(0), { tenant, requestId, body, behaviour: 'pays' });
  await simulation.scheduler.runAll();
  const response = await repeated;
  assert.equal(response.call.sentAt, undefined, 'a repeat is not sent');
  return response;
}

/** Those that are not older than the idempotency window. @param at milliseconds since 1970 */
const withinWindow = <Value>(all: readonly Value[], at: (one: Value) => number): readonly Value[] =>
  all.filter((one) => Date.now() - at(one) < windowMs);
