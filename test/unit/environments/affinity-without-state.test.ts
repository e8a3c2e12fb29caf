/** Payments while the shared state is out of reach: what an instance remembers goes on, the rest is refused. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAffinity } from '../../../src/environments/affinity.ts';
import type { Home } from '../../../src/environments/payment-record.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createLogLines } from '../../kit/log-lines.ts';
import { until } from '../../kit/within.ts';
import { dayMs, stopClocks } from './affinity-time.ts';
import { errorOf } from './requests.ts';

const inSandbox: Home = { environment: 'sandbox', tenant: 'shop' };
const inProduction: Home = { environment: 'production', tenant: 'shop' };
const rivals: Home = { environment: 'sandbox', tenant: 'rival' };

/** Two instances, each with its own way to one state. */
function startTwo() {
  const shared = createMemoryState();
  const [way, otherWay] = [createFailingState(shared), createFailingState(shared)];
  const { log, lines } = createLogLines();
  const one = createAffinity(way, 400 * dayMs, log);
  const other = createAffinity(otherWay, 400 * dayMs, log);
  return { shared, way, one, other, lines };
}

describe('while the shared state is out of reach', () => {
  test('an instance goes on with what it learnt or read, for as long as that lasts', async (t) => {
    const pass = stopClocks(t);
    const { way, one, other } = startTwo();
    await one.learn('learnt', inSandbox, 'remembered');
    await other.learn('read', inProduction, 'remembered');
    await one.homesOf('read', 'shop');
    way.fail();
    pass(3_600_000);
    assert.deepEqual(await one.homesOf('learnt', 'shop'), [inSandbox]);
    assert.deepEqual(await one.homesOf('read', 'shop'), [inProduction]);
  });

  test('a payment that it does not remember is refused, not called unknown', async () => {
    const { way, one } = startTwo();
    way.fail();
    assert.equal((await errorOf(() => one.homesOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test("a payment that it remembers as another tenant's is refused, for it may be this one's too", async () => {
    const { way, one } = startTwo();
    await one.learn('p-1', rivals, 'remembered');
    way.fail();
    assert.equal((await errorOf(() => one.homesOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await one.homesOf('p-1', 'rival'), [rivals]);
  });

  test('what is learnt is remembered at once, loudly, and told to the state later', async () => {
    const { way, one, other, lines } = startTwo();
    way.fail();
    await one.learn('p-1', inSandbox, 'remembered');
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['error'],
    );
    assert.deepEqual(await one.homesOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await other.homesOf('p-1', 'shop'), []);
    assert.equal((await errorOf(() => one.settle())).code, 'STATE_UNAVAILABLE');

    way.heal();
    await one.settle();
    assert.deepEqual(await other.homesOf('p-1', 'shop'), [inSandbox]);
  });

  test('nothing is told twice', async () => {
    const { way, one } = startTwo();
    way.fail();
    await one.learn('p-1', inSandbox, 'remembered');
    way.heal();
    await one.settle();
    const { length } = way.asked;
    await one.settle();
    assert.equal(way.asked.length, length);
  });

  test('what is told later joins what others have learnt meanwhile', async () => {
    const { way, one, other } = startTwo();
    way.fail();
    await one.learn('p-1', inSandbox, 'remembered');
    await other.learn('p-1', inProduction, 'remembered');
    way.heal();
    await one.settle();
    assert.deepEqual(await one.homesOf('p-1', 'shop'), [inProduction, inSandbox]);
    await until(2_000, 'the other sees both', async () => (await other.homesOf('p-1', 'shop')).length === 2);
  });

  test('what is not told yet is remembered, whatever others announce meanwhile', async () => {
    const { shared, way, one, other } = startTwo();
    way.fail();
    await one.learn('p-1', inSandbox, 'remembered');
    await other.learn('p-1', inProduction, 'remembered');
    await other.learn('p-1', rivals, 'remembered');
    let heard = false;
    shared.announcements.subscribe('payment', () => {
      heard = true;
    });
    await until(2_000, 'the announcement has been heard', () => heard);

    const { code } = await errorOf(() => one.homesOf('p-1', 'shop'));
    assert.equal(code, 'STATE_UNAVAILABLE', 'there are other homes, and which is not known');
    way.heal();
    assert.deepEqual(new Set(await one.homesOf('p-1', 'shop')), new Set([inSandbox, inProduction, rivals]));
  });

  test('what another instance has announced a second home of is refused: it would be a guess', async () => {
    const { shared, way, one, other } = startTwo();
    let heard = false;
    shared.announcements.subscribe('payment', () => {
      heard = true;
    });
    await one.learn('p-1', inSandbox, 'remembered');
    await other.learn('p-1', inProduction, 'remembered');
    await until(2_000, 'the announcement has been heard', () => heard);
    way.fail();
    assert.equal((await errorOf(() => one.homesOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test('what was read to add a home to it is remembered, though nobody could be told', async () => {
    const { way, one, other } = startTwo();
    await other.learn('p-1', inProduction, 'remembered');
    way.fail('publish');
    await one.learn('p-1', inSandbox, 'remembered');
    way.fail();
    assert.deepEqual(new Set(await one.homesOf('p-1', 'shop')), new Set([inProduction, inSandbox]));
  });

  test('one payment whose record cannot be read does not keep the others from being told', async () => {
    const { shared, way, one, other } = startTwo();
    way.fail();
    for (const id of ['p-1', 'p-2']) await one.learn(id, inSandbox, 'remembered');
    const [broken = ''] = way.asked.map((operation) => operation.replace(/^\S+ /, ''));
    await shared.keyValues.write(broken, 'no record');
    way.heal();
    assert.equal((await errorOf(() => one.settle())).code, 'STATE_UNAVAILABLE');
    assert.equal((await errorOf(() => one.settle())).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await other.homesOf('p-2', 'shop'), [inSandbox]);

    await shared.keyValues.remove(broken);
    await one.settle();
    assert.deepEqual(await other.homesOf('p-1', 'shop'), [inSandbox]);
  });
});
