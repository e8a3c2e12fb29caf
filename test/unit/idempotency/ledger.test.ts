import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  createInstance,
  createLossyState,
  entryOf,
  errorCodeOf,
  inDoubtWriteOf,
  leaseMs,
  startInstance,
  useFakeTime,
} from './instance.ts';
import { identityOf, initiation } from './requests.ts';

describe('the ledger', () => {
  test('lets exactly one of several concurrent requests claim an unused X-Request-ID', async (t) => {
    const { state, instance } = startInstance(t);
    const instances = [instance, createInstance(state), createInstance(state)];
    const all = await Promise.all([...instances, ...instances].map((one) => one.lookUp()));
    assert.equal(all.filter(({ kind }) => kind === 'claimed').length, 1);
    assert.equal(all.filter(({ kind }) => kind === 'running').length, all.length - 1);
  });

  test('lets a request claim an X-Request-ID that is released at the same instant', async (t) => {
    const { time, state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.release();
    const slowRead = async (key: string) => {
      const value = await state.keyValues.read(key);
      time.skip(1); // as long as the marker of a released entry exists
      return value;
    };
    const reader = createInstance({ ...state, keyValues: { ...state.keyValues, read: slowRead } });
    assert.equal((await reader.lookUp()).kind, 'claimed');
  });

  test('reports a request as running while its live instance has claimed or sent it', async (t) => {
    const { state, instance } = startInstance(t);
    const other = createInstance(state);
    const claim = await instance.claim();
    assert.equal((await other.lookUp()).kind, 'running');
    await claim.markSending('sandbox');
    assert.equal((await other.lookUp()).kind, 'running');
    assert.equal((await instance.lookUp()).kind, 'running');
  });

  test('lets exactly one request take over the claim of a dead instance', async (t) => {
    const { time, state, instance } = startInstance(t);
    await instance.claim();
    time.skip(leaseMs);
    const found = await Promise.all(
      [createInstance(state), createInstance(state)].map((one) => one.lookUp()),
    );
    assert.deepEqual(found.map(({ kind }) => kind).toSorted(), ['claimed', 'running']);
  });

  test('reports a request as in doubt if its instance died while sending it', async (t) => {
    const { time, state, instance } = startInstance(t);
    await (await instance.claim()).markSending('sandbox');
    time.skip(leaseMs);
    const other = createInstance(state);
    assert.deepEqual(await other.lookUp(), { kind: 'in-doubt', environment: 'sandbox' });
    const { id, entry } = await inDoubtWriteOf(state);
    assert.equal(entry.why, 'the gateway instance that sent it has stopped');
    assert.deepEqual(
      (await other.services.inDoubt.all()).map(({ id: name }) => name),
      [id],
    );
    assert.deepEqual(other.logged, ['error: a payment is in doubt']);
  });

  test('lists a request whose instance died before it was in the index', async (t) => {
    const { time, state, instance } = startInstance(t);
    await (await instance.claim()).markSending('sandbox');
    for (const name of await instance.services.unresolvedIndex.list())
      await instance.services.unresolvedIndex.remove(name);
    time.skip(leaseMs);
    const other = createInstance(state);
    assert.equal((await other.lookUp()).kind, 'in-doubt');
    assert.equal((await other.services.inDoubt.all()).length, 1);
  });

  for (const status of [201, 400, 503])
    test(`returns the stored response with status ${status}`, async (t) => {
      const { instance } = startInstance(t);
      const claim = await instance.claim();
      await claim.markSending('sandbox');
      await claim.recordResponse(bankResponse(status));
      const found = await instance.lookUp();
      assert.ok(found.kind === 'answered');
      assert.equal(found.entry.status, status);
    });

  test('reports a request that an operator resolved as happened, with its payment id', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.markInDoubt('no answer');
    const { id } = await inDoubtWriteOf(state);
    const resolution = { id, who: 'an operator', outcome: 'happened', reason: 'the bank said so' } as const;
    await instance.resolve({ ...resolution, paymentId: 'a-payment' });
    const found = await instance.lookUp();
    assert.ok(found.kind === 'happened');
    assert.equal(found.entry.paymentId, 'a-payment');
  });

  test('reports a used X-Request-ID as running, then as in doubt, before it rejects another request', async (t) => {
    const { time, state, instance } = startInstance(t);
    const other = initiation({ body: 'another' });
    const kindOnAll = async () => {
      const all = [instance, createInstance(state)].map(({ lookUp }) => lookUp(other));
      return (await Promise.all(all)).map(({ kind }) => kind);
    };
    const claim = await instance.claim();
    await instance.services.instanceLeases.renew();
    assert.deepEqual(await kindOnAll(), ['running', 'running']);
    await claim.markSending('sandbox');
    assert.deepEqual(await kindOnAll(), ['running', 'running']);
    time.skip(leaseMs);
    assert.equal((await createInstance(state).lookUp(other)).kind, 'in-doubt');
    await claim.recordResponse(bankResponse(500));
    assert.deepEqual(await kindOnAll(), ['in-doubt', 'in-doubt']);
    await instance.resolve({ ...(await inDoubtWriteOf(state)), who: 'me', outcome: 'happened', reason: '' });
    assert.deepEqual(await kindOnAll(), ['another-request', 'another-request']);
  });

  test('rejects another request with a used X-Request-ID, and leaves the entry alone', async (t) => {
    const { state, instance } = startInstance(t);
    const claim = await instance.claim();
    await claim.markSending('sandbox');
    await claim.recordResponse(bankResponse(201));
    for (const one of [instance, createInstance(state)]) {
      const expected = { kind: 'another-request', difference: 'content' };
      assert.deepEqual(await one.lookUp(initiation({ body: 'another' })), expected);
    }
    assert.equal((await entryOf(state))?.step, 'answered');
  });

  for (const text of ['garbage', '{"v":2,"step":"claimed"}', '{}', 'null'])
    test(`reports an unreadable entry as in doubt: ${text}`, async (t) => {
      const { state, instance } = startInstance(t);
      await state.keyValues.write(`ledger:entry:${identityOf(initiation()).id}`, text);
      assert.deepEqual(await instance.lookUp(), { kind: 'in-doubt' });
    });
});

describe('a claim whose reply from the state was lost', () => {
  test('is released, because no request executes it', async (t) => {
    const { state } = startInstance(t);
    const connection = createLossyState(state);
    const instance = createInstance(connection);
    connection.loseNextReply('writeIfAbsent');
    assert.equal(await errorCodeOf(instance.lookUp()), 'STATE_UNAVAILABLE');
    await instance.services.pendingWrites.flush();
    assert.equal((await instance.lookUp()).kind, 'claimed');
  });

  for (const [what, prepare] of [
    ['a released entry', async ({ instance }) => (await instance.claim()).release()],
    [
      'the claim of a dead instance',
      async ({ time, instance }) => {
        await instance.claim();
        time.skip(leaseMs);
      },
    ],
  ] as const satisfies readonly (readonly [
    string,
    (started: ReturnType<typeof startInstance>) => Promise<void>,
  ])[])
    test(`is released if it replaced ${what}`, async (t) => {
      const started = startInstance(t);
      await prepare(started);
      const connection = createLossyState(started.state);
      const instance = createInstance(connection);
      connection.loseNextReply('replace');
      assert.equal((await instance.lookUp()).kind, 'running');
      await instance.services.pendingWrites.flush();
      assert.equal((await instance.lookUp()).kind, 'claimed');
    });
});

describe('the ledger without its state', () => {
  test('fails to claim an X-Request-ID', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    state.fail();
    const instance = createInstance(state);
    assert.equal(await errorCodeOf(instance.lookUp()), 'STATE_UNAVAILABLE');
  });

  test('reports a request as running if an entry exists and cannot be read', async (t) => {
    useFakeTime(t);
    const state = createFailingState();
    const instance = createInstance(state);
    await instance.claim();
    state.fail('read');
    assert.equal((await instance.lookUp()).kind, 'running');
  });
});

test('a first request costs at most seven operations on the state', async (t) => {
  useFakeTime(t);
  const state = createFailingState();
  const instance = createInstance(state);
  await instance.services.lossGuard.verify();
  const before = state.operations.length;
  const claim = await instance.claim();
  await claim.markSending('sandbox');
  await claim.recordResponse(bankResponse(201));
  const operations = state.operations.slice(before);
  assert.ok(operations.length <= 7, operations.join(', '));
});
