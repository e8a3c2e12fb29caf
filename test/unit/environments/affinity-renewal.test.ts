/** How long a payment is remembered: for a time after its last use, standing orders without end. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createAffinity } from '../../../src/environments/affinity.ts';
import type { Home } from '../../../src/environments/payment-record.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createLogLines } from '../../kit/log-lines.ts';
import { dayMs, stopClocks } from './affinity-time.ts';

const home: Home = { environment: 'sandbox', tenant: 'shop' };

function startedAt(t: TestContext) {
  const pass = stopClocks(t);
  const state = createFailingState();
  const instance = () => createAffinity(state, 400 * dayMs, createLogLines().log);
  /** What an instance that has just started finds. */
  const found = () => instance().homesOf('p-1', 'shop');
  const renewals = () => state.asked.filter((operation) => operation.startsWith('replace')).length;
  return { pass, state, instance, found, renewals };
}

describe('a payment', () => {
  test('that nobody asks for is forgotten after the time set', async (t) => {
    const { pass, instance, found } = startedAt(t);
    await instance().learn('p-1', home, 'remembered');
    pass(400 * dayMs);
    assert.deepEqual(await found(), []);
  });

  test('that is used is remembered for that time again', async (t) => {
    const { pass, instance, found } = startedAt(t);
    await instance().learn('p-1', home, 'remembered');
    pass(399 * dayMs);
    assert.deepEqual(await found(), [home]);
    pass(399 * dayMs);
    assert.deepEqual(await found(), [home]);
    pass(400 * dayMs);
    assert.deepEqual(await found(), []);
  });

  test('is renewed once a day at most, however often it is used', async (t) => {
    const { pass, instance, renewals } = startedAt(t);
    const affinity = instance();
    await affinity.learn('p-1', home, 'remembered');
    for (let minute = 0; minute < 3 * 24 * 60; minute += 1) {
      await affinity.homesOf('p-1', 'shop');
      pass(60_000);
    }
    assert.equal(renewals(), 2);
  });

  test('is found although its renewal fails: that can be done another day', async (t) => {
    const { pass, state, instance, found } = startedAt(t);
    await instance().learn('p-1', home, 'remembered');
    pass(2 * dayMs);
    state.fail('replace');
    assert.deepEqual(await found(), [home]);
  });

  test('that is a standing order is remembered without end, and never needs renewal', async (t) => {
    const { pass, instance, found, renewals } = startedAt(t);
    await instance().learn('p-1', home, 'endless');
    pass(10_000 * dayMs);
    assert.deepEqual(await found(), [home]);
    assert.equal(renewals(), 0);
  });

  test('that is a standing order stays one, even if a payment elsewhere has the same id', async (t) => {
    const { pass, instance, found } = startedAt(t);
    const elsewhere = { environment: 'production', tenant: 'shop' };
    await instance().learn('p-1', home, 'endless');
    await instance().learn('p-1', elsewhere, 'remembered');
    pass(10_000 * dayMs);
    assert.deepEqual(await found(), [home, elsewhere]);
  });
});
