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

/** One instance of the gateway on a state that others may share. */
const instanceOn = (state: State) => createAffinityStore(state, 400 * dayMs, captureLog().log);

describe('where payments live', () => {
  test('is known to the instance that learnt it, and to every other one', async () => {
    const state = createMemoryState();
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await instanceOn(state).environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('is not known of a payment that nobody learnt of, or of an id that differs in case alone', async () => {
    const affinity = instanceOn(createMemoryState());
    await affinity.recordEnvironment('Payment', inSandbox, 'expiring');
    for (const id of ['another', 'payment', 'Payment ', '']) {
      assert.deepEqual(await affinity.environmentsOf(id, 'shop'), []);
    }
  });

  test('can be several places: a second home is added and never takes the place of the first', async () => {
    const state = createMemoryState();
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await one.recordEnvironment('p-1', inProduction, 'expiring');
    await instanceOn(state).recordEnvironment('p-1', rivals, 'expiring');
    assert.deepEqual(await instanceOn(state).environmentsOf('p-1', 'shop'), [
      inSandbox,
      inProduction,
      rivals,
    ]);
  });

  test('is learnt once, however often it is told', async () => {
    const affinity = instanceOn(createMemoryState());
    for (const _ of [1, 2, 3]) await affinity.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(await affinity.environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('costs the shared state one question, as long as nobody else knows the payment', async () => {
    const state = createFailingState();
    await instanceOn(state).recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(
      state.operations.map((operation) => operation.replace(/ .*/, '')),
      ['writeIfAbsent'],
    );
  });

  test('is told again if what was known is forgotten meanwhile', async () => {
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

  test('is lost by none of several instances that learn at the same moment', async () => {
    const state = createMemoryState();
    const homes = ['one', 'two', 'three', 'four'].map((environment) => ({ environment, tenant: 'shop' }));
    await Promise.all(homes.map((home) => instanceOn(state).recordEnvironment('p-1', home, 'expiring')));
    const known = await instanceOn(state).environmentsOf('p-1', 'shop');
    assert.deepEqual(new Set(known), new Set(homes));
  });

  test('is told to every tenant that asks: whose it is decides the choice', async () => {
    const affinity = instanceOn(createMemoryState());
    await affinity.recordEnvironment('p-1', rivals, 'expiring');
    assert.deepEqual(await affinity.environmentsOf('p-1', 'shop'), [rivals]);
  });

  test('is kept under a hash: no payment id stands in the shared state', async () => {
    const state = createFailingState();
    await instanceOn(state).recordEnvironment('1234-wertiq-983', inSandbox, 'expiring');
    assert.ok(state.operations.length > 0);
    assert.ok(!state.operations.some((operation) => operation.includes('wertiq')));
  });
});

describe('what an instance remembers by itself', () => {
  test('is not enough for a tenant that it does not name: the state may know more', async () => {
    const state = createMemoryState();
    const mute = createFailingState(state);
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', rivals, 'expiring');
    mute.fail('publish');
    await instanceOn(mute).recordEnvironment('p-1', inProduction, 'expiring');
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [rivals, inProduction]);
  });

  // An announcement may be lost, and in a cluster it may come after the answer that it should precede.
  test('is never taken for the whole truth: a second home is seen at once, announced or not', async () => {
    const state = createMemoryState();
    const mute = createFailingState(state);
    const one = instanceOn(state);
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    mute.fail('publish');
    await instanceOn(mute).recordEnvironment('p-1', inProduction, 'expiring');
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox, inProduction]);
  });

  test('is not forgotten because the shared state has forgotten it', async () => {
    const state = createMemoryState();
    const affinity = instanceOn(
      createFailingState({ ...state, keyValues: { ...state.keyValues, read: async () => undefined } }),
    );
    await affinity.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(await affinity.environmentsOf('p-1', 'shop'), [inSandbox]);
  });
});

describe('a record that cannot be read', () => {
  const corrupt = [
    '',
    'sandbox',
    '{}',
    '{"v":2,"homes":[["sandbox","shop"]],"renewedAt":0,"endless":false}',
    '{"v":1,"homes":[],"renewedAt":0,"endless":false}',
    '{"v":1,"homes":[["sandbox"]],"renewedAt":0,"endless":false}',
  ];

  for (const value of corrupt) {
    test(`refuses the request rather than guess: ${value || 'an empty one'}`, async () => {
      const state = createFailingState();
      const affinity = instanceOn(state);
      await affinity.environmentsOf('p-1', 'shop');
      const key = state.operations[0]?.replace('read ', '') ?? '';
      await state.keyValues.write(key, value);
      const { code, message } = await errorOf(() => affinity.environmentsOf('p-1', 'shop'));
      assert.equal(code, 'STATE_UNAVAILABLE');
      assert.doesNotMatch(message, /p-1|sandbox/);
      assert.equal(await state.keyValues.read(key), value);
    });
  }
});

// MERGED HEADER (rewrite or remove):
/* How long a payment is remembered: for a time after its last use, standing orders without end. */

const sandboxAffinity: PaymentAffinity = { environment: 'sandbox', tenant: 'shop' };

function startedAt(t: TestContext) {
  const pass = useFakeClocks(t);
  const state = createFailingState();
  const instance = () => createAffinityStore(state, 400 * dayMs, captureLog().log);
  /** What an instance that has just started finds. */
  const found = () => instance().environmentsOf('p-1', 'shop');
  const renewals = () => state.operations.filter((operation) => operation.startsWith('replace')).length;
  return { pass, state, instance, found, renewals };
}

describe('a payment', () => {
  test('that nobody asks for is forgotten after the time set', async (t) => {
    const { pass, instance, found } = startedAt(t);
    await instance().recordEnvironment('p-1', sandboxAffinity, 'expiring');
    pass(400 * dayMs);
    assert.deepEqual(await found(), []);
  });

  test('that is used is remembered for that time again', async (t) => {
    const { pass, instance, found } = startedAt(t);
    await instance().recordEnvironment('p-1', sandboxAffinity, 'expiring');
    pass(399 * dayMs);
    assert.deepEqual(await found(), [sandboxAffinity]);
    pass(399 * dayMs);
    assert.deepEqual(await found(), [sandboxAffinity]);
    pass(400 * dayMs);
    assert.deepEqual(await found(), []);
  });

  test('is renewed once a day at most, however often it is used', async (t) => {
    const { pass, instance, renewals } = startedAt(t);
    const affinity = instance();
    await affinity.recordEnvironment('p-1', sandboxAffinity, 'expiring');
    for (let minute = 0; minute < 3 * 24 * 60; minute += 1) {
      await affinity.environmentsOf('p-1', 'shop');
      pass(60_000);
    }
    assert.equal(renewals(), 2);
  });

  test('is found although its renewal fails: that can be done another day', async (t) => {
    const { pass, state, instance, found } = startedAt(t);
    await instance().recordEnvironment('p-1', sandboxAffinity, 'expiring');
    pass(2 * dayMs);
    state.fail('replace');
    assert.deepEqual(await found(), [sandboxAffinity]);
  });

  test('that is a standing order is remembered without end, and never needs renewal', async (t) => {
    const { pass, instance, found, renewals } = startedAt(t);
    await instance().recordEnvironment('p-1', sandboxAffinity, 'permanent');
    pass(10_000 * dayMs);
    assert.deepEqual(await found(), [sandboxAffinity]);
    assert.equal(renewals(), 0);
  });

  test('that is a standing order stays one, even if a payment elsewhere has the same id', async (t) => {
    const { pass, instance, found } = startedAt(t);
    const elsewhere = { environment: 'production', tenant: 'shop' };
    await instance().recordEnvironment('p-1', sandboxAffinity, 'permanent');
    await instance().recordEnvironment('p-1', elsewhere, 'expiring');
    pass(10_000 * dayMs);
    assert.deepEqual(await found(), [sandboxAffinity, elsewhere]);
  });
});
