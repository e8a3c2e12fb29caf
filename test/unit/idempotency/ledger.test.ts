import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { identityOf } from '../../../src/idempotency/request-identity.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  claimAt,
  createLossyState,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  instanceOn,
  leaseMs,
  startInstance,
  useFakeTime,
} from './instance.ts';
import { initiation } from './requests.ts';

describe('an X-Request-ID', () => {
  test('that nobody has used is free, for one of all that ask at once', async (t) => {
    const { state, instance } = startInstance(t);
    const instances = [instance, instanceOn(state), instanceOn(state)];
    const all = await Promise.all([...instances, ...instances].map((one) => claimAt(one)));
    assert.equal(all.filter(({ kind }) => kind === 'free').length, 1);
    assert.equal(all.filter(({ kind }) => kind === 'running').length, all.length - 1);
  });

  test('that was given back is free again, at the same instant', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.release();
    const found = claimAt(instanceOn({ ...state, keyValues: { ...state.keyValues, read: reading } }));
    assert.equal((await found).kind, 'free');

    /** Reading takes the time for which a claim that was given back still stands. */
    async function reading(key: string) {
      const read = await state.keyValues.read(key);
      clocks.skip(1);
      return read;
    }
  });

  test('runs while an instance that is alive has claimed or sent it', async (t) => {
    const { state, instance } = startInstance(t);
    const other = instanceOn(state);
    const claim = await instance.claim();
    assert.equal((await claimAt(other)).kind, 'running');
    await claim.markSending('sandbox');
    assert.equal((await claimAt(other)).kind, 'running');
    assert.equal((await claimAt(instance)).kind, 'running');
  });

  test('whose claimant is dead is claimed by the next, and by one only', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await instance.claim();
    clocks.skip(leaseMs);
    const found = await Promise.all([instanceOn(state), instanceOn(state)].map((one) => claimAt(one)));
    assert.deepEqual(found.map(({ kind }) => kind).toSorted(), ['free', 'running']);
  });

  test('that a dead instance has sent is in doubt, and never sent again', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await (await instance.claim()).markSending('sandbox');
    clocks.skip(leaseMs);
    const other = instanceOn(state);
    assert.deepEqual(await claimAt(other), { kind: 'in-doubt', environment: 'sandbox' });
    const { id, entry } = await inDoubtWriteOf(state);
    assert.equal(entry.why, 'the gateway instance that sent it is gone');
    assert.deepEqual(
      (await other.services.inDoubt.all()).map((doubt) => doubt.id),
      [id],
    );
    assert.deepEqual(other.logged, ['error: a payment is in doubt']);
  });

  test('that a dead instance had sent is listed even if it died before the index had it', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    await (await instance.claim()).markSending('sandbox');
    for (const name of await instance.services.unresolvedIndex.list())
      await instance.services.unresolvedIndex.remove(name);
    clocks.skip(leaseMs);
    const other = instanceOn(state);
    assert.equal((await claimAt(other)).kind, 'in-doubt');
    assert.equal((await other.services.inDoubt.all()).length, 1);
  });

  for (const status of [201, 400, 503])
    test(`that was answered by ${status} has its answer`, async (t) => {
      const { instance } = startInstance(t);
      const claim = await instance.claim();
      await claim.markSending('sandbox');
      await claim.recordResponse(bankResponse(status));
      const found = await claimAt(instance);
      assert.ok(found.kind === 'answered');
      assert.equal(found.entry.status, status);
    });

  test('that was resolved as happened is known to have', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('no answer');
    const { id } = await inDoubtWriteOf(state);
    const resolution = { id, who: 'an operator', outcome: 'happened', reason: 'so says the bank' } as const;
    await instance.resolve({ ...resolution, paymentId: 'a-payment' });
    const found = await claimAt(instance);
    assert.ok(found.kind === 'happened');
    assert.equal(found.entry.paymentId, 'a-payment');
  });

  test('on another request is told so at every step, and the step is left as it is', async (t) => {
    const { clocks, state, instance } = startInstance(t);
    const other = initiation({ body: 'another' });
    const claim = await instance.claim();
    assert.equal((await claimAt(instance, other)).kind, 'another-request');
    await claim.markSending('sandbox');
    assert.equal((await claimAt(instance, other)).kind, 'another-request');
    clocks.skip(leaseMs);
    assert.equal((await claimAt(instanceOn(state), other)).kind, 'another-request');
    assert.equal((await entryOf(state))?.step, 'sending');
    await claim.recordResponse(bankResponse(201));
    assert.equal((await claimAt(instance, other)).kind, 'another-request');
  });

  for (const text of ['garbage', '{"v":2,"step":"claimed"}', '{}', 'null'])
    test(`under which ${text} stands is in doubt: nobody knows what it was`, async (t) => {
      const { state, instance } = startInstance(t);
      await state.keyValues.write(`ledger:entry:${identityOf(initiation()).id}`, text);
      assert.deepEqual(await claimAt(instance), { kind: 'in-doubt' });
    });
});

describe('a claim that the state took without saying so', () => {
  test('is taken back: nobody carries it out', async (t) => {
    const { state } = startInstance(t);
    const way = createLossyState(state);
    const instance = instanceOn(way);
    way.forgetNext('writeIfAbsent');
    assert.equal(await errorCodeOf(claimAt(instance)), 'STATE_UNAVAILABLE');
    await instance.services.pendingWrites.flush();
    assert.equal((await claimAt(instance)).kind, 'free');
  });

  for (const [before, lay] of [
    ['what was given back', async ({ instance }) => (await instance.claim()).release()],
    [
      'what a dead instance had claimed',
      async ({ clocks, instance }) => {
        await instance.claim();
        clocks.skip(leaseMs);
      },
    ],
  ] as const satisfies readonly (readonly [
    string,
    (started: ReturnType<typeof startInstance>) => Promise<void>,
  ])[])
    test(`is taken back, in place of ${before}`, async (t) => {
      const started = startInstance(t);
      await lay(started);
      const way = createLossyState(started.state);
      const instance = instanceOn(way);
      way.forgetNext('replace');
      assert.equal((await claimAt(instance)).kind, 'running');
      await instance.services.pendingWrites.flush();
      assert.equal((await claimAt(instance)).kind, 'free');
    });
});

describe('without the state', () => {
  test('nothing is found, and nothing is claimed', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    state.fail();
    const instance = instanceOn(state);
    assert.equal(await errorCodeOf(claimAt(instance)), 'STATE_UNAVAILABLE');
  });

  test('in the middle of asking, what has been claimed before counts as running', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = instanceOn(state);
    await instance.claim();
    state.fail('read');
    assert.equal((await claimAt(instance)).kind, 'running');
  });
});

test('a first request asks the state twice before the bank and once behind it, with the index beside', async (t) => {
  useFakeTime(t);
  const state = createFailingState();
  const instance = instanceOn(state);
  await instance.services.instanceLeases.register();
  const before = state.operations.length;
  const claim = await instance.claim();
  await claim.markSending('sandbox');
  await claim.recordResponse(bankResponse(201));
  const asked = state.operations.slice(before).map((one) => one.split(':').slice(0, 2).join(':'));
  assert.deepEqual(asked, [
    ...['writeIfAbsent ledger:entry', 'replace ledger:entry', 'add ledger:open'],
    ...['replace ledger:entry', 'publish ledger', 'remove ledger:open'],
  ]);
});
