/** What must hold at every moment of a simulation, and what must hold after it has come to rest. */

import assert from 'node:assert/strict';
import { isInDoubt, type LedgerEntry } from '../../../../src/idempotency/ledger-entry.ts';
import {
  attemptName,
  createLedgerStore,
  createUnresolvedIndex,
} from '../../../../src/idempotency/ledger-store.ts';
import { errorTable } from '../../../../src/request/errors.ts';
import { settleTasks } from '../fake-time.ts';
import { windowMs } from '../instance.ts';
import type { Payment, TppCall } from './fake-bank.ts';
import { requestKey, type Simulation, type TppResponse } from './simulation.ts';

export async function checkInvariants(simulation: Simulation): Promise<void> {
  assert.deepEqual(simulation.failures, []);
  checkPaidOnce(simulation.bank.payments);
  for (const response of simulation.responses) checkIsTrue(response, simulation.bank.payments);
  if (simulation.store.hasLost()) return; // the index may lack an entry until its instance restores it
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

async function readEntries({
  state,
  ids,
}: Simulation): Promise<readonly { id: string; entry: LedgerEntry }[]> {
  const store = createLedgerStore(state.keyValues, state.partitions);
  const all = await Promise.all([...ids].map(async (id) => ({ id, entry: (await store.read(id))?.entry })));
  return all.flatMap(({ id, entry }) => (entry ? [{ id, entry }] : []));
}

/** The recorded names, unless the state has lost changes of them. */
const readIndex = async ({ indexed, store }: Simulation): Promise<ReadonlySet<string>> =>
  store.hasLost() ? new Set(await createUnresolvedIndex(store.sets).list()) : indexed;

/** A live holder may just be restoring a lost entry, and adds its name to the index afterwards. */
const isHolderAlive = ({ instances }: Simulation, entry: LedgerEntry): boolean =>
  instances.some(
    ({ services, process }) => services.instanceLeases.ownId === entry.holder && !process.isDead(),
  );

const wasSent = ({ calls }: Simulation, { attempt }: LedgerEntry): boolean =>
  calls.some((call) => call.attempt === attempt && call.sentAt !== undefined);

/** Resumes all instances, repairs the state, reloads the configuration, and lets time pass until nothing is left to do. */
export async function runToQuiescence(simulation: Simulation): Promise<void> {
  for (const { state, process } of simulation.instances) {
    state.recover();
    process.resume();
  }
  for (const ms of [8_000, 200_000, 8_000]) {
    for (const { reload } of simulation.instances) void reload();
    await simulation.advance(ms);
  }
}

export async function checkQuiescentState(simulation: Simulation): Promise<void> {
  await checkInvariants(simulation);
  if (simulation.instances.some(({ services }) => services.lossGuard.report().status !== 'ok'))
    return checkRefusesNewWrites(simulation);
  for (const { entry } of await readEntries(simulation))
    if (entry.step === 'sending') await repeatUnsent(simulation, entry);
  await simulation.advance(8_000);
  const entries = await readEntries(simulation);
  const indexed = await readIndex(simulation);
  for (const { entry } of entries)
    assert.ok(entry.step !== 'claimed' && entry.step !== 'sending', 'no entry is claimed or sending');
  for (const { id, entry } of entries)
    assert.ok(
      !isInDoubt(entry) || indexed.has(attemptName(id, entry.attempt)),
      'every entry in doubt is in the index',
    );
  const inDoubt = entries.filter(({ entry }) => isInDoubt(entry)).map(({ entry }) => simulation.keyOf(entry));
  await checkListsAreComplete(simulation, inDoubt);

  for (const { call, paymentId } of withinWindow(simulation.bank.payments, ({ madeAt }) => madeAt)) {
    const { text } = await repeat(simulation, call);
    assert.ok(text.includes(paymentId) || inDoubt.includes(requestKey(call)), `a repeat gets: ${text}`);
  }
  for (const call of withinWindow(simulation.calls, ({ sentAt = 0 }) => sentAt)) {
    if (call.receivedStatus === undefined || isUnprocessed(call.receivedStatus) || call.process.isDead())
      continue;
    if (simulation.resolved.has(requestKey(call))) continue;
    const { status } = await repeat(simulation, call);
    assert.equal(status, call.receivedStatus, 'a repeat gets the response that a live instance received');
  }
  await checkInvariants(simulation);
}

/** Writes may be lost, and nobody remembers them: no payment is repeated, whichever instance is asked. */
async function checkRefusesNewWrites(simulation: Simulation): Promise<void> {
  assert.ok(simulation.store.hasLost(), 'new writes are refused only after a loss');
  for (const instance of simulation.instances)
    for (const { call } of withinWindow(simulation.bank.payments, ({ madeAt }) => madeAt)) {
      void simulation.send(instance, { ...call, behaviour: 'pays' });
      await simulation.advance(4_000);
    }
  await checkInvariants(simulation);
}

/**
 * Repeats a request whose instance died before it sent the first byte, or whose name the state has lost: its name may be
 * missing in the index, so that only a repeat resolves its entry.
 */
async function repeatUnsent(simulation: Simulation, entry: LedgerEntry): Promise<void> {
  const mayBeMissing = !wasSent(simulation, entry) || simulation.store.hasLost();
  assert.ok(mayBeMissing, 'a scan finds every request that was sent');
  const same = simulation.calls.filter((call) => requestKey(call) === simulation.keyOf(entry));
  for (const call of same) await repeat(simulation, call);
}

async function checkListsAreComplete(simulation: Simulation, inDoubt: readonly string[]): Promise<void> {
  for (const { services } of simulation.instances) {
    const all = await resultOf(simulation, services.inDoubt.all());
    assert.deepEqual(all.map(({ entry }) => simulation.keyOf(entry)).toSorted(), inDoubt.toSorted());
  }
  await simulation.advance(8_000);
  for (const { inDoubtCount } of simulation.instances)
    assert.equal(inDoubtCount(), inDoubt.length, 'every write in doubt is counted');
}

/** Sends the same request again, which must not reach the bank. */
async function repeat(simulation: Simulation, { tenant, requestId, body }: TppCall): Promise<TppResponse> {
  const request = { tenant, requestId, body, behaviour: 'pays' } as const;
  const response = await resultOf(simulation, simulation.send(simulation.instance(0), request));
  assert.equal(response.call.sentAt, undefined, 'a repeat is not sent');
  return response;
}

/** What an instance answers while time passes: it may wait until it has checked the state. No request takes longer than its deadline. */
async function resultOf<Value>(simulation: Simulation, answer: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  answer.then(settle, settle);
  await simulation.scheduler.runAll();
  for (let waitedMs = 0; !isSettled && waitedMs < 40_000; waitedMs += 2_000) await simulation.advance(2_000);
  assert.ok(isSettled, 'a request is answered within its deadline');
  return answer;
}

/** An instance answers the repeats of what it has answered itself from its own memory, whatever the state holds. */
export async function checkMemory(simulation: Simulation): Promise<void> {
  const { responses, instances } = simulation;
  const answered = responses.filter(
    ({ code, status }) => code === undefined && status < 500 && !isUnprocessed(status),
  );
  for (const { call, status } of withinWindow(answered, ({ call }) => call.sentAt ?? 0)) {
    const instance = instances.find(({ process }) => process === call.process && process.isRunning());
    if (!instance) continue;
    const before = responses.length;
    void simulation.send(instance, { ...call, behaviour: 'pays' });
    await settleTasks();
    assert.deepEqual(
      responses.slice(before).map((response) => response.status),
      [status],
      'an instance answers what it remembers without the state',
    );
  }
}

/** Those that are not older than the idempotency window. @param at milliseconds since 1970 */
const withinWindow = <Value>(all: readonly Value[], at: (one: Value) => number): readonly Value[] =>
  all.filter((one) => Date.now() - at(one) < windowMs);

/** The bank refused the request without processing it: a repeat is sent again. */
const isUnprocessed = (status: number) => status === 429 || status === 401;
