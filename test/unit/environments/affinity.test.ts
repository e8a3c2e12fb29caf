import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createAffinityStore } from '../../../src/environments/affinity.ts';
import type { PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { dayMs, useFakeClocks } from './fake-clocks.ts';
import { errorOf } from './requests.ts';

const inSandbox: PaymentAffinity = { environment: 'sandbox', tenant: 'shop' };
const inProduction: PaymentAffinity = { environment: 'production', tenant: 'shop' };
const rivals: PaymentAffinity = { environment: 'sandbox', tenant: 'rival' };

/** An instance of the gateway on a state that it may share with others. */
const instanceOn = (state: State) => createAffinityStore(state, 400 * dayMs, captureLog().log);

describe('the affinity of a payment', () => {
  test('is available on the instance that recorded it and on every other one', async () => {
    const state = createMemoryState();
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await instanceOn(state).environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('is empty for an id that was not recorded, and ids are case-sensitive', async () => {
    const store = instanceOn(createMemoryState());
    await store.recordEnvironment('Payment', inSandbox, 'expiring');
    for (const id of ['another', 'payment', 'Payment ', '']) {
      assert.deepEqual(await store.environmentsOf(id, 'shop'), []);
    }
  });

  test('can contain several environments and tenants, and never loses one', async () => {
    const state = createMemoryState();
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await one.recordEnvironment('p-1', inProduction, 'expiring');
    const elsewhere = { environment: 'staging', tenant: 'rival' };
    await instanceOn(state).recordEnvironment('p-1', elsewhere, 'expiring');
    assert.deepEqual(await instanceOn(state).environmentsOf('p-1', 'shop'), [
      inSandbox,
      inProduction,
      elsewhere,
    ]);
  });

  test('never gets a second tenant in one environment, whichever instance records it', async () => {
    const state = createMemoryState();
    const [one, other] = [instanceOn(state), instanceOn(state)];
    assert.equal(await one.recordEnvironment('p-1', inSandbox, 'expiring'), true);
    for (const instance of [one, other]) {
      assert.equal(await instance.recordEnvironment('p-1', rivals, 'expiring'), false);
      assert.equal(await instance.recordEnvironment('p-1', inSandbox, 'expiring'), true);
    }
    assert.deepEqual(await other.environmentsOf('p-1', 'rival'), [inSandbox]);
  });

  test('gets one of two tenants that are recorded at the same time', async () => {
    const state = createMemoryState();
    const all = [inSandbox, rivals].map((affinity) =>
      instanceOn(state).recordEnvironment('p-1', affinity, 'expiring'),
    );
    assert.deepEqual((await Promise.all(all)).toSorted(), [false, true]);
    assert.equal((await instanceOn(state).environmentsOf('p-1', 'shop')).length, 1);
  });

  test('can have another identity of the same tenant', async () => {
    const store = instanceOn(createMemoryState());
    await store.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.equal(await store.recordEnvironment('p-1', rivals, 'expiring', () => false), true);
  });

  test('contains an environment once, however often it is recorded', async () => {
    const store = instanceOn(createMemoryState());
    for (const _ of [1, 2, 3]) await store.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(await store.environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('costs one operation on the state when it is recorded for a new payment', async () => {
    const state = createFailingState();
    await instanceOn(state).recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(
      state.operations.map((operation) => operation.replace(/ .*/, '')),
      ['writeIfAbsent'],
    );
  });

  test('is recorded if the stored record expires during the write', async () => {
    const state = createMemoryState();
    await instanceOn(state).recordEnvironment('p-1', inProduction, 'expiring');
    const read = async (key: string) => {
      await state.keyValues.remove(key);
      return undefined;
    };
    await instanceOn({ ...state, keyValues: { ...state.keyValues, read } }).recordEnvironment(
      'p-1',
      inSandbox,
      'expiring',
    );
    assert.deepEqual(await instanceOn(state).environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('contains all environments that several instances record at the same time', async () => {
    const state = createMemoryState();
    const affinities = ['one', 'two', 'three', 'four'].map((environment) => ({
      environment,
      tenant: 'shop',
    }));
    await Promise.all(
      affinities.map((affinity) => instanceOn(state).recordEnvironment('p-1', affinity, 'expiring')),
    );
    const known = await instanceOn(state).environmentsOf('p-1', 'shop');
    assert.deepEqual(new Set(known), new Set(affinities));
  });

  test('includes other tenants, because the routing rules check the owner', async () => {
    const store = instanceOn(createMemoryState());
    await store.recordEnvironment('p-1', rivals, 'expiring');
    assert.deepEqual(await store.environmentsOf('p-1', 'shop'), [rivals]);
  });

  test('is stored under a hash of the payment id', async () => {
    const state = createFailingState();
    await instanceOn(state).recordEnvironment('1234-wertiq-983', inSandbox, 'expiring');
    assert.ok(state.operations.length > 0);
    assert.ok(!state.operations.some((operation) => operation.includes('wertiq')));
  });
});

describe('the affinity cache of an instance', () => {
  test('does not hide an affinity of the caller that another instance stored', async () => {
    const state = createMemoryState();
    const silent = createFailingState(state);
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', rivals, 'expiring');
    silent.fail('publish');
    await instanceOn(silent).recordEnvironment('p-1', inProduction, 'expiring');
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [rivals, inProduction]);
  });

  // A published message may be lost, and in a cluster it may arrive late.
  test('does not hide a second affinity that another instance stored, even without a published message', async () => {
    const state = createMemoryState();
    const silent = createFailingState(state);
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    silent.fail('publish');
    await instanceOn(silent).recordEnvironment('p-1', inProduction, 'expiring');
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox, inProduction]);
  });

  test('keeps an affinity that the state has lost', async () => {
    const state = createMemoryState();
    const store = instanceOn(
      createFailingState({ ...state, keyValues: { ...state.keyValues, read: async () => undefined } }),
    );
    await store.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(await store.environmentsOf('p-1', 'shop'), [inSandbox]);
  });
});

describe('an affinity record that cannot be read', () => {
  const corrupt = [
    '',
    'sandbox',
    '{}',
    '{"v":2,"homes":[{"environment":"sandbox","tenant":"shop"}],"renewedAt":0,"endless":false}',
    '{"v":1,"homes":[],"renewedAt":0,"endless":false}',
    '{"v":1,"homes":[{"environment":"sandbox"}],"renewedAt":0,"endless":false}',
  ];

  for (const value of corrupt) {
    test(`fails the request and is left alone: ${value || 'empty text'}`, async () => {
      const state = createFailingState();
      const store = instanceOn(state);
      await store.environmentsOf('p-1', 'shop');
      const key = state.operations[0]?.replace('read ', '') ?? '';
      await state.keyValues.write(key, value);
      const { code, message } = await errorOf(() => store.environmentsOf('p-1', 'shop'));
      assert.equal(code, 'STATE_UNAVAILABLE');
      assert.doesNotMatch(message, /p-1|sandbox/);
      assert.equal(await state.keyValues.read(key), value);
    });
  }
});

function startWithFakeClocks(t: TestContext) {
  const advance = useFakeClocks(t);
  const state = createFailingState();
  /** Reads with a new instance, which has cached nothing. */
  const read = () => instanceOn(state).environmentsOf('p-1', 'shop');
  const renewals = () => state.operations.filter((operation) => operation.startsWith('replace')).length;
  return { advance, state, store: instanceOn(state), read, renewals };
}

describe('the expiry of an affinity record', () => {
  test('happens after the configured time without use', async (t) => {
    const { advance, store, read } = startWithFakeClocks(t);
    await store.recordEnvironment('p-1', inSandbox, 'expiring');
    advance(400 * dayMs);
    assert.deepEqual(await read(), []);
  });

  test('is postponed by every use', async (t) => {
    const { advance, store, read } = startWithFakeClocks(t);
    await store.recordEnvironment('p-1', inSandbox, 'expiring');
    advance(399 * dayMs);
    assert.deepEqual(await read(), [inSandbox]);
    advance(399 * dayMs);
    assert.deepEqual(await read(), [inSandbox]);
    advance(400 * dayMs);
    assert.deepEqual(await read(), []);
  });

  test('is postponed by at most one write per day', async (t) => {
    const { advance, store, renewals } = startWithFakeClocks(t);
    await store.recordEnvironment('p-1', inSandbox, 'expiring');
    for (let minute = 0; minute < 3 * 24 * 60; minute += 1) {
      await store.environmentsOf('p-1', 'shop');
      advance(60_000);
    }
    assert.equal(renewals(), 2);
  });

  test('does not make a read fail if the renewal fails', async (t) => {
    const { advance, state, store, read } = startWithFakeClocks(t);
    await store.recordEnvironment('p-1', inSandbox, 'expiring');
    advance(2 * dayMs);
    state.fail('replace');
    assert.deepEqual(await read(), [inSandbox]);
  });

  test('never happens for a standing order, which needs no renewal', async (t) => {
    const { advance, store, read, renewals } = startWithFakeClocks(t);
    await store.recordEnvironment('p-1', inSandbox, 'permanent');
    advance(10_000 * dayMs);
    assert.deepEqual(await read(), [inSandbox]);
    assert.equal(renewals(), 0);
  });

  test('never happens for a standing order, even if another payment has the same id', async (t) => {
    const { advance, store, read } = startWithFakeClocks(t);
    await store.recordEnvironment('p-1', inSandbox, 'permanent');
    await store.recordEnvironment('p-1', inProduction, 'expiring');
    advance(10_000 * dayMs);
    assert.deepEqual(await read(), [inSandbox, inProduction]);
  });
});
