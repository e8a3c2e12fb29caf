/** What holds at every moment of a history, and what when all has come to rest. */

import assert from 'node:assert/strict';
import { kinds } from '../../../../src/flow/errors.ts';
import { createEntries } from '../../../../src/idempotency/entries.ts';
import { type Entry, isDoubtful } from '../../../../src/idempotency/entry.ts';
import { nameOf as nameOfAttempt } from '../../../../src/idempotency/open-entries.ts';
import type { Call, Payment } from './paying-bank.ts';
import { nameOf, type Told, type World } from './world.ts';

/** How long an answer is kept for repeats: the configuration's default, in milliseconds. */
const windowMs = 24 * 3_600_000;

export async function promiseAtAnyTime(world: World): Promise<void> {
  assert.deepEqual(world.failures, []);
  paidOnce(world.bank.payments);
  for (const one of world.told) toldTheTruth(one, world.bank.payments);
  for (const { id, entry } of await kept(world))
    if (
      (isDoubtful(entry) && !mayBeListing(world, entry)) ||
      (entry.step === 'sending' && wasSent(world, entry))
    )
      assert.ok(
        world.listed.has(nameOfAttempt(id, entry.attempt)),
        `what is ${entry.step} stands in the index`,
      );
}

/** An attempt that has lost its entry begins it anew, and then lists it: its instance may stand between the two. */
const mayBeListing = ({ runs }: World, entry: Entry): boolean =>
  runs.some(({ lasting, process }) => lasting.holders.own === entry.holder && !process.isDead());

function paidOnce(payments: readonly Payment[]): void {
  for (const [name, same] of Map.groupBy(payments, ({ call }) => nameOf(call)))
    same.reduce((one, next) => {
      assert.ok(next.madeAt - one.madeAt >= windowMs, `${name} was paid twice`);
      return next;
    });
}

function toldTheTruth({ call, status, code, text }: Told, payments: readonly Payment[]): void {
  if (code === undefined && status < 300) {
    const named = payments.find(({ paymentId }) => paymentId === JSON.parse(text).paymentId);
    assert.ok(named, 'an answer of success names a payment');
    assert.deepEqual([nameOf(named.call), named.call.body], [nameOf(call), call.body]);
  }
  if (code !== undefined && kinds[code].reached === 'no')
    assert.equal(call.sentAt, undefined, `${code} says that nothing was sent`);
}

/** What is kept and can be read. */
async function kept({ state, ids }: World): Promise<readonly { id: string; entry: Entry }[]> {
  const entries = createEntries(state.keyValues);
  const all = await Promise.all(
    [...ids].map(async (id) => {
      return { id, entry: (await entries.read(id))?.entry };
    }),
  );
  return all.flatMap(({ id, entry }) => (entry ? [{ id, entry }] : []));
}

const wasSent = ({ calls }: World, { attempt }: Entry): boolean =>
  calls.some((call) => call.attempt === attempt && call.sentAt !== undefined);

/** Everybody who sleeps wakes up, the state is well, and time passes until nothing is left to do. */
export async function comeToRest(world: World): Promise<void> {
  for (const { way, process } of world.runs) {
    way.heal();
    process.wake();
  }
  for (const ms of [8_000, 200_000, 8_000]) await world.pass(ms);
}

export async function promiseAtRest(world: World): Promise<void> {
  await promiseAtAnyTime(world);
  for (const { entry } of await kept(world)) if (entry.step === 'sending') await comeAgain(world, entry);
  await world.pass(8_000);
  const entries = await kept(world);
  for (const { entry } of entries)
    assert.ok(entry.step !== 'claimed' && entry.step !== 'sending', 'nothing is left under way');
  for (const { id, entry } of entries)
    assert.ok(
      !isDoubtful(entry) || world.listed.has(nameOfAttempt(id, entry.attempt)),
      'every doubt stands in the index',
    );
  const doubtful = entries.filter(({ entry }) => isDoubtful(entry)).map(({ entry }) => nameOf(entry));
  await theListIsComplete(world, doubtful);

  for (const { call, paymentId } of lately(world.bank.payments, ({ madeAt }) => madeAt)) {
    const { text } = await repeated(world, call);
    assert.ok(text.includes(paymentId) || doubtful.includes(nameOf(call)), `a repeat is told ${text}`);
  }
  for (const call of lately(world.calls, ({ sentAt = 0 }) => sentAt)) {
    if (call.heard === undefined || call.heard === 429 || call.process.isDead()) continue;
    if (world.resolved.has(nameOf(call))) continue;
    const { status } = await repeated(world, call);
    assert.equal(status, call.heard, 'a repeat gets the answer that an instance has heard, and lives on');
  }
  await promiseAtAnyTime(world);
}

/** What was about to be sent when its instance died is found by whoever repeats it: the index may not have had it yet. */
async function comeAgain(world: World, entry: Entry): Promise<void> {
  assert.ok(!wasSent(world, entry), 'what was sent is found by looking around');
  const same = world.calls.filter((call) => nameOf(call) === nameOf(entry));
  for (const call of same) await repeated(world, call);
}

async function theListIsComplete(world: World, doubtful: readonly string[]): Promise<void> {
  for (const { lasting } of world.runs) {
    const all = lasting.doubts.all();
    await world.steps.settle();
    assert.deepEqual((await all).map(({ entry }) => nameOf(entry)).toSorted(), doubtful.toSorted());
  }
  await world.pass(8_000);
  for (const { doubts } of world.runs) assert.equal(doubts(), doubtful.length, 'every doubt is counted');
}

/** The same request again, on some instance. */
async function repeated(world: World, { tenant, requestId, body }: Call): Promise<Told> {
  const repeat = world.ask(world.run(0), { tenant, requestId, body, manner: 'pays' });
  await world.steps.settle();
  const told = await repeat;
  assert.equal(told.call.sentAt, undefined, 'a repeat is not sent');
  return told;
}

/** Those that are not older than the window, by a time in milliseconds since 1970. */
const lately = <Value>(all: readonly Value[], at: (one: Value) => number): readonly Value[] =>
  all.filter((one) => Date.now() - at(one) < windowMs);
