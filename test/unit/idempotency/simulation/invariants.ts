/** What holds at every moment of a history, and what when all has come to rest. */

import assert from 'node:assert/strict';
import { isInDoubt, type LedgerEntry } from '../../../../src/idempotency/ledger-entry.ts';
import { createLedgerStore, attemptName as nameOfAttempt } from '../../../../src/idempotency/ledger-store.ts';
import { errorTable } from '../../../../src/request/errors.ts';
import type { Payment, TppCall } from './fake-bank.ts';
import { requestKey, type Simulation, type TppResponse } from './simulation.ts';

/** How long an answer is kept for repeats: the configuration's default, in milliseconds. */
const windowMs = 24 * 3_600_000;

export async function checkInvariants(world: Simulation): Promise<void> {
  assert.deepEqual(world.failures, []);
  paidOnce(world.bank.payments);
  for (const one of world.responses) toldTheTruth(one, world.bank.payments);
  for (const { id, entry } of await kept(world))
    if (
      (isInDoubt(entry) && !mayBeListing(world, entry)) ||
      (entry.step === 'sending' && wasSent(world, entry))
    )
      assert.ok(
        world.indexed.has(nameOfAttempt(id, entry.attempt)),
        `what is ${entry.step} stands in the index`,
      );
}

/** An attempt that has lost its entry begins it anew, and then lists it: its instance may stand between the two. */
const mayBeListing = ({ instances }: Simulation, entry: LedgerEntry): boolean =>
  instances.some(
    ({ services, process }) => services.instanceLeases.ownId === entry.holder && !process.isDead(),
  );

function paidOnce(payments: readonly Payment[]): void {
  for (const [name, same] of Map.groupBy(payments, ({ call }) => requestKey(call)))
    same.reduce((one, next) => {
      assert.ok(next.madeAt - one.madeAt >= windowMs, `${name} was paid twice`);
      return next;
    });
}

function toldTheTruth({ call, status, code, text }: TppResponse, payments: readonly Payment[]): void {
  if (code === undefined && status < 300) {
    const named = payments.find(({ paymentId }) => paymentId === JSON.parse(text).paymentId);
    assert.ok(named, 'an answer of success names a payment');
    assert.deepEqual([requestKey(named.call), named.call.body], [requestKey(call), call.body]);
  }
  if (code !== undefined && errorTable[code].reachedBank === 'no')
    assert.equal(call.sentAt, undefined, `${code} says that nothing was sent`);
}

/** What is kept and can be read. */
async function kept({ state, ids }: Simulation): Promise<readonly { id: string; entry: LedgerEntry }[]> {
  const entries = createLedgerStore(state.keyValues);
  const all = await Promise.all(
    [...ids].map(async (id) => {
      return { id, entry: (await entries.read(id))?.entry };
    }),
  );
  return all.flatMap(({ id, entry }) => (entry ? [{ id, entry }] : []));
}

const wasSent = ({ calls }: Simulation, { attempt }: LedgerEntry): boolean =>
  calls.some((call) => call.attempt === attempt && call.sentAt !== undefined);

/** Everybody who sleeps wakes up, the state is well, and time passes until nothing is left to do. */
export async function runToQuiescence(world: Simulation): Promise<void> {
  for (const { state, process } of world.instances) {
    state.heal();
    process.wake();
  }
  for (const ms of [8_000, 200_000, 8_000]) await world.advance(ms);
}

export async function checkQuiescentState(world: Simulation): Promise<void> {
  await checkInvariants(world);
  for (const { entry } of await kept(world)) if (entry.step === 'sending') await comeAgain(world, entry);
  await world.advance(8_000);
  const entries = await kept(world);
  for (const { entry } of entries)
    assert.ok(entry.step !== 'claimed' && entry.step !== 'sending', 'nothing is left under way');
  for (const { id, entry } of entries)
    assert.ok(
      !isInDoubt(entry) || world.indexed.has(nameOfAttempt(id, entry.attempt)),
      'every doubt stands in the index',
    );
  const doubtful = entries.filter(({ entry }) => isInDoubt(entry)).map(({ entry }) => requestKey(entry));
  await theListIsComplete(world, doubtful);

  for (const { call, paymentId } of lately(world.bank.payments, ({ madeAt }) => madeAt)) {
    const { text } = await repeated(world, call);
    assert.ok(text.includes(paymentId) || doubtful.includes(requestKey(call)), `a repeat is told ${text}`);
  }
  for (const call of lately(world.calls, ({ sentAt = 0 }) => sentAt)) {
    if (call.receivedStatus === undefined || call.receivedStatus === 429 || call.process.isDead()) continue;
    if (world.resolved.has(requestKey(call))) continue;
    const { status } = await repeated(world, call);
    assert.equal(
      status,
      call.receivedStatus,
      'a repeat gets the answer that an instance has heard, and lives on',
    );
  }
  await checkInvariants(world);
}

/** What was about to be sent when its instance died is found by whoever repeats it: the index may not have had it yet. */
async function comeAgain(world: Simulation, entry: LedgerEntry): Promise<void> {
  assert.ok(!wasSent(world, entry), 'what was sent is found by looking around');
  const same = world.calls.filter((call) => requestKey(call) === requestKey(entry));
  for (const call of same) await repeated(world, call);
}

async function theListIsComplete(world: Simulation, doubtful: readonly string[]): Promise<void> {
  for (const { services } of world.instances) {
    const all = services.inDoubt.all();
    await world.scheduler.runAll();
    assert.deepEqual((await all).map(({ entry }) => requestKey(entry)).toSorted(), doubtful.toSorted());
  }
  await world.advance(8_000);
  for (const { inDoubtCount } of world.instances)
    assert.equal(inDoubtCount(), doubtful.length, 'every doubt is counted');
}

/** The same request again, on some instance. */
async function repeated(world: Simulation, { tenant, requestId, body }: TppCall): Promise<TppResponse> {
  const repeat = world.send(world.instance(0), { tenant, requestId, body, manner: 'pays' });
  await world.scheduler.runAll();
  const told = await repeat;
  assert.equal(told.call.sentAt, undefined, 'a repeat is not sent');
  return told;
}

/** Those that are not older than the window, by a time in milliseconds since 1970. */
const lately = <Value>(all: readonly Value[], at: (one: Value) => number): readonly Value[] =>
  all.filter((one) => Date.now() - at(one) < windowMs);
