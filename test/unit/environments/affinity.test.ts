import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAffinity } from '../../../src/environments/affinity.ts';
import type { Home } from '../../../src/environments/payment-record.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createLogLines } from '../../kit/log-lines.ts';
import { dayMs } from './affinity-time.ts';
import { errorOf } from './requests.ts';

const inSandbox: Home = { environment: 'sandbox', tenant: 'shop' };
const inProduction: Home = { environment: 'production', tenant: 'shop' };
const rivals: Home = { environment: 'sandbox', tenant: 'rival' };

/** One instance of the gateway on a state that others may share. */
const instanceOn = (state: State) => createAffinity(state, 400 * dayMs, createLogLines().log);

describe('where payments live', () => {
  test('is known to the instance that learnt it, and to every other one', async () => {
    const state = createMemoryState();
    const one = instanceOn(state);
    await one.learn('p-1', inSandbox, 'remembered');
    assert.deepEqual(await one.homesOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await instanceOn(state).homesOf('p-1', 'shop'), [inSandbox]);
  });

  test('is not known of a payment that nobody learnt of, or of an id that differs in case alone', async () => {
    const affinity = instanceOn(createMemoryState());
    await affinity.learn('Payment', inSandbox, 'remembered');
    for (const id of ['another', 'payment', 'Payment ', '']) {
      assert.deepEqual(await affinity.homesOf(id, 'shop'), []);
    }
  });

  test('can be several places: a second home is added and never takes the place of the first', async () => {
    const state = createMemoryState();
    const one = instanceOn(state);
    await one.learn('p-1', inSandbox, 'remembered');
    await one.learn('p-1', inProduction, 'remembered');
    await instanceOn(state).learn('p-1', rivals, 'remembered');
    assert.deepEqual(await instanceOn(state).homesOf('p-1', 'shop'), [inSandbox, inProduction, rivals]);
  });

  test('is learnt once, however often it is told', async () => {
    const affinity = instanceOn(createMemoryState());
    for (const _ of [1, 2, 3]) await affinity.learn('p-1', inSandbox, 'remembered');
    assert.deepEqual(await affinity.homesOf('p-1', 'shop'), [inSandbox]);
  });

  test('costs the shared state one question, as long as nobody else knows the payment', async () => {
    const state = createFailingState();
    await instanceOn(state).learn('p-1', inSandbox, 'remembered');
    assert.deepEqual(
      state.asked.map((operation) => operation.replace(/ .*/, '')),
      ['writeIfAbsent'],
    );
  });

  test('is told again if what was known is forgotten meanwhile', async () => {
    const state = createMemoryState();
    await instanceOn(state).learn('p-1', inProduction, 'remembered');
    const read = async (key: string) => {
      await state.keyValues.remove(key);
      return undefined;
    };
    await instanceOn({ ...state, keyValues: { ...state.keyValues, read } }).learn(
      'p-1',
      inSandbox,
      'remembered',
    );
    assert.deepEqual(await instanceOn(state).homesOf('p-1', 'shop'), [inSandbox]);
  });

  test('is lost by none of several instances that learn at the same moment', async () => {
    const state = createMemoryState();
    const homes = ['one', 'two', 'three', 'four'].map((environment) => ({ environment, tenant: 'shop' }));
    await Promise.all(homes.map((home) => instanceOn(state).learn('p-1', home, 'remembered')));
    const known = await instanceOn(state).homesOf('p-1', 'shop');
    assert.deepEqual(new Set(known), new Set(homes));
  });

  test('is told to every tenant that asks: whose it is decides the choice', async () => {
    const affinity = instanceOn(createMemoryState());
    await affinity.learn('p-1', rivals, 'remembered');
    assert.deepEqual(await affinity.homesOf('p-1', 'shop'), [rivals]);
  });

  test('is kept under a hash: no payment id stands in the shared state', async () => {
    const state = createFailingState();
    await instanceOn(state).learn('1234-wertiq-983', inSandbox, 'remembered');
    assert.ok(state.asked.length > 0);
    assert.ok(!state.asked.some((operation) => operation.includes('wertiq')));
  });
});

describe('what an instance remembers by itself', () => {
  test('is not enough for a tenant that it does not name: the state may know more', async () => {
    const state = createMemoryState();
    const mute = createFailingState(state);
    const one = instanceOn(state);
    await one.learn('p-1', rivals, 'remembered');
    mute.fail('publish');
    await instanceOn(mute).learn('p-1', inProduction, 'remembered');
    assert.deepEqual(await one.homesOf('p-1', 'shop'), [rivals, inProduction]);
  });

  // An announcement may be lost, and in a cluster it may come after the answer that it should precede.
  test('is never taken for the whole truth: a second home is seen at once, announced or not', async () => {
    const state = createMemoryState();
    const mute = createFailingState(state);
    const one = instanceOn(state);
    await one.learn('p-1', inSandbox, 'remembered');
    mute.fail('publish');
    await instanceOn(mute).learn('p-1', inProduction, 'remembered');
    assert.deepEqual(await one.homesOf('p-1', 'shop'), [inSandbox, inProduction]);
  });

  test('is not forgotten because the shared state has forgotten it', async () => {
    const state = createMemoryState();
    const affinity = instanceOn(
      createFailingState({ ...state, keyValues: { ...state.keyValues, read: async () => undefined } }),
    );
    await affinity.learn('p-1', inSandbox, 'remembered');
    assert.deepEqual(await affinity.homesOf('p-1', 'shop'), [inSandbox]);
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
      await affinity.homesOf('p-1', 'shop');
      const key = state.asked[0]?.replace('read ', '') ?? '';
      await state.keyValues.write(key, value);
      const { code, message } = await errorOf(() => affinity.homesOf('p-1', 'shop'));
      assert.equal(code, 'STATE_UNAVAILABLE');
      assert.doesNotMatch(message, /p-1|sandbox/);
      assert.equal(await state.keyValues.read(key), value);
    });
  }
});
