import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { identityOf } from '../../../src/idempotency/fingerprint.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  answer,
  codeOf,
  doubtOf,
  findAt,
  forgetfulWayTo,
  instanceOn,
  keptOf,
  leaseMs,
  start,
  stopped,
} from './ledger.ts';
import { initiation } from './requests.ts';

describe('an X-Request-ID', () => {
  test('that nobody has used is free, for one of all that ask at once', async (t) => {
    const { state, instance } = start(t);
    const instances = [instance, instanceOn(state), instanceOn(state)];
    const all = await Promise.all([...instances, ...instances].map((one) => findAt(one)));
    assert.equal(all.filter(({ kind }) => kind === 'free').length, 1);
    assert.equal(all.filter(({ kind }) => kind === 'running').length, all.length - 1);
  });

  test('that was given back is free again, at the same instant', async (t) => {
    const { clocks, state, instance } = start(t);
    const claim = await instance.claim();
    await claim.release();
    const found = findAt(instanceOn({ ...state, keyValues: { ...state.keyValues, read: reading } }));
    assert.equal((await found).kind, 'free');

    /** Reading takes the time for which a claim that was given back still stands. */
    async function reading(key: string) {
      const read = await state.keyValues.read(key);
      clocks.spend(1);
      return read;
    }
  });

  test('runs while an instance that is alive has claimed or sent it', async (t) => {
    const { state, instance } = start(t);
    const other = instanceOn(state);
    const claim = await instance.claim();
    assert.equal((await findAt(other)).kind, 'running');
    await claim.pass('sandbox');
    assert.equal((await findAt(other)).kind, 'running');
    assert.equal((await findAt(instance)).kind, 'running');
  });

  test('whose claimant is dead is claimed by the next, and by one only', async (t) => {
    const { clocks, state, instance } = start(t);
    await instance.claim();
    clocks.spend(leaseMs);
    const found = await Promise.all([instanceOn(state), instanceOn(state)].map((one) => findAt(one)));
    assert.deepEqual(found.map(({ kind }) => kind).toSorted(), ['free', 'running']);
  });

  test('that a dead instance has sent is in doubt, and never sent again', async (t) => {
    const { clocks, state, instance } = start(t);
    await (await instance.claim()).pass('sandbox');
    clocks.spend(leaseMs);
    const other = instanceOn(state);
    assert.deepEqual(await findAt(other), { kind: 'in-doubt', environment: 'sandbox' });
    const { id, entry } = await doubtOf(state);
    assert.equal(entry.why, 'the gateway instance that sent it is gone');
    assert.deepEqual(
      (await other.lasting.doubts.all()).map((doubt) => doubt.id),
      [id],
    );
    assert.deepEqual(other.logged, ['error: a payment is in doubt']);
  });

  test('that a dead instance had sent is listed even if it died before the index had it', async (t) => {
    const { clocks, state, instance } = start(t);
    await (await instance.claim()).pass('sandbox');
    for (const name of await instance.lasting.open.names()) await instance.lasting.open.remove(name);
    clocks.spend(leaseMs);
    const other = instanceOn(state);
    assert.equal((await findAt(other)).kind, 'in-doubt');
    assert.equal((await other.lasting.doubts.all()).length, 1);
  });

  for (const status of [201, 400, 503])
    test(`that was answered by ${status} has its answer`, async (t) => {
      const { instance } = start(t);
      const claim = await instance.claim();
      await claim.pass('sandbox');
      await claim.answered(answer(status));
      const found = await findAt(instance);
      assert.ok(found.kind === 'answered');
      assert.equal(found.entry.status, status);
    });

  test('that was resolved as happened is known to have', async (t) => {
    const { state, instance } = start(t);
    const claim = await instance.claim();
    await claim.pass('sandbox');
    await claim.doubt('no answer');
    const { id } = await doubtOf(state);
    const resolution = { id, who: 'an operator', outcome: 'happened', reason: 'so says the bank' } as const;
    await instance.resolve({ ...resolution, paymentId: 'a-payment' });
    const found = await findAt(instance);
    assert.ok(found.kind === 'happened');
    assert.equal(found.entry.paymentId, 'a-payment');
  });

  test('on another request is told so at every step, and the step is left as it is', async (t) => {
    const { clocks, state, instance } = start(t);
    const other = initiation({ body: 'another' });
    const claim = await instance.claim();
    assert.equal((await findAt(instance, other)).kind, 'another-request');
    await claim.pass('sandbox');
    assert.equal((await findAt(instance, other)).kind, 'another-request');
    clocks.spend(leaseMs);
    assert.equal((await findAt(instanceOn(state), other)).kind, 'another-request');
    assert.equal((await keptOf(state))?.step, 'sending');
    await claim.answered(answer(201));
    assert.equal((await findAt(instance, other)).kind, 'another-request');
  });

  for (const text of ['garbage', '{"v":2,"step":"claimed"}', '{}', 'null'])
    test(`under which ${text} stands is in doubt: nobody knows what it was`, async (t) => {
      const { state, instance } = start(t);
      await state.keyValues.write(`ledger:entry:${identityOf(initiation()).id}`, text);
      assert.deepEqual(await findAt(instance), { kind: 'in-doubt' });
    });
});

describe('a claim that the state took without saying so', () => {
  test('is taken back: nobody carries it out', async (t) => {
    const { state } = start(t);
    const way = forgetfulWayTo(state);
    const instance = instanceOn(way);
    way.forgetNext('writeIfAbsent');
    assert.equal(await codeOf(findAt(instance)), 'STATE_UNAVAILABLE');
    await instance.lasting.owed.settle();
    assert.equal((await findAt(instance)).kind, 'free');
  });

  for (const [before, lay] of [
    ['what was given back', async ({ instance }) => (await instance.claim()).release()],
    [
      'what a dead instance had claimed',
      async ({ clocks, instance }) => {
        await instance.claim();
        clocks.spend(leaseMs);
      },
    ],
  ] as const satisfies readonly (readonly [string, (started: ReturnType<typeof start>) => Promise<void>])[])
    test(`is taken back, in place of ${before}`, async (t) => {
      const started = start(t);
      await lay(started);
      const way = forgetfulWayTo(started.state);
      const instance = instanceOn(way);
      way.forgetNext('replace');
      assert.equal((await findAt(instance)).kind, 'running');
      await instance.lasting.owed.settle();
      assert.equal((await findAt(instance)).kind, 'free');
    });
});

describe('without the state', () => {
  test('nothing is found, and nothing is claimed', async (t) => {
    stopped(t);
    const state = createFailingState();
    state.fail();
    const instance = instanceOn(state);
    assert.equal(await codeOf(findAt(instance)), 'STATE_UNAVAILABLE');
  });

  test('in the middle of asking, what has been claimed before counts as running', async (t) => {
    stopped(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await instance.claim();
    state.fail('read');
    assert.equal((await findAt(instance)).kind, 'running');
  });
});

test('a first request asks the state twice before the bank and once behind it, with the index beside', async (t) => {
  stopped(t);
  const state = createFailingState();
  const instance = instanceOn(state);
  await instance.lasting.holders.introduce();
  const before = state.asked.length;
  const claim = await instance.claim();
  await claim.pass('sandbox');
  await claim.answered(answer(201));
  const asked = state.asked.slice(before).map((one) => one.split(':').slice(0, 2).join(':'));
  assert.deepEqual(asked, [
    ...['writeIfAbsent ledger:entry', 'replace ledger:entry', 'add ledger:open'],
    ...['replace ledger:entry', 'publish ledger', 'remove ledger:open'],
  ]);
});
