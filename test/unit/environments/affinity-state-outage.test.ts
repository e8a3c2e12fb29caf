/** Payments while the shared state is out of reach: what an instance remembers goes on, the rest is refused. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAffinityStore } from '../../../src/environments/affinity.ts';
import type { PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { until } from '../../kit/within.ts';
import { dayMs, useFakeClocks } from './fake-clocks.ts';
import { errorOf } from './requests.ts';

const inSandbox: PaymentAffinity = { environment: 'sandbox', tenant: 'shop' };
const inProduction: PaymentAffinity = { environment: 'production', tenant: 'shop' };
const rivals: PaymentAffinity = { environment: 'sandbox', tenant: 'rival' };

/** Two instances, each with its own way to one state. */
function startTwo() {
  const shared = createMemoryState();
  const [way, otherWay] = [createFailingState(shared), createFailingState(shared)];
  const { log, lines } = captureLog();
  const one = createAffinityStore(way, 400 * dayMs, log);
  const other = createAffinityStore(otherWay, 400 * dayMs, log);
  return { shared, way, one, other, lines };
}

describe('while the shared state is out of reach', () => {
  test('an instance goes on with what it learnt or read, for as long as that lasts', async (t) => {
    const pass = useFakeClocks(t);
    const { way, one, other } = startTwo();
    await one.recordEnvironment('learnt', inSandbox, 'remembered');
    await other.recordEnvironment('read', inProduction, 'remembered');
    await one.environmentsOf('read', 'shop');
    way.fail();
    pass(3_600_000);
    assert.deepEqual(await one.environmentsOf('learnt', 'shop'), [inSandbox]);
    assert.deepEqual(await one.environmentsOf('read', 'shop'), [inProduction]);
  });

  test('a payment that it does not remember is refused, not called unknown', async () => {
    const { way, one } = startTwo();
    way.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test("a payment that it remembers as another tenant's is refused, for it may be this one's too", async () => {
    const { way, one } = startTwo();
    await one.recordEnvironment('p-1', rivals, 'remembered');
    way.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await one.environmentsOf('p-1', 'rival'), [rivals]);
  });

  test('what is learnt is remembered at once, loudly, and told to the state later', async () => {
    const { way, one, other, lines } = startTwo();
    way.fail();
    await one.recordEnvironment('p-1', inSandbox, 'remembered');
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['error'],
    );
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await other.environmentsOf('p-1', 'shop'), []);
    assert.equal((await errorOf(() => one.flush())).code, 'STATE_UNAVAILABLE');

    way.recover();
    await one.flush();
    assert.deepEqual(await other.environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('nothing is told twice', async () => {
    const { way, one } = startTwo();
    way.fail();
    await one.recordEnvironment('p-1', inSandbox, 'remembered');
    way.recover();
    await one.flush();
    const { length } = way.operations;
    await one.flush();
    assert.equal(way.operations.length, length);
  });

  test('what is told later joins what others have learnt meanwhile', async () => {
    const { way, one, other } = startTwo();
    way.fail();
    await one.recordEnvironment('p-1', inSandbox, 'remembered');
    await other.recordEnvironment('p-1', inProduction, 'remembered');
    way.recover();
    await one.flush();
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inProduction, inSandbox]);
    await until(
      2_000,
      'the other sees both',
      async () => (await other.environmentsOf('p-1', 'shop')).length === 2,
    );
  });

  test('what is not told yet is remembered, whatever others announce meanwhile', async () => {
    const { shared, way, one, other } = startTwo();
    way.fail();
    await one.recordEnvironment('p-1', inSandbox, 'remembered');
    await other.recordEnvironment('p-1', inProduction, 'remembered');
    await other.recordEnvironment('p-1', rivals, 'remembered');
    let heard = false;
    shared.pubsub.subscribe('payment', () => {
      heard = true;
    });
    await until(2_000, 'the announcement has been heard', () => heard);

    const { code } = await errorOf(() => one.environmentsOf('p-1', 'shop'));
    assert.equal(code, 'STATE_UNAVAILABLE', 'there are other homes, and which is not known');
    way.recover();
    assert.deepEqual(
      new Set(await one.environmentsOf('p-1', 'shop')),
      new Set([inSandbox, inProduction, rivals]),
    );
  });

  test('what another instance has announced a second home of is refused: it would be a guess', async () => {
    const { shared, way, one, other } = startTwo();
    let heard = false;
    shared.pubsub.subscribe('payment', () => {
      heard = true;
    });
    await one.recordEnvironment('p-1', inSandbox, 'remembered');
    await other.recordEnvironment('p-1', inProduction, 'remembered');
    await until(2_000, 'the announcement has been heard', () => heard);
    way.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test('what was read to add a home to it is remembered, though nobody could be told', async () => {
    const { way, one, other } = startTwo();
    await other.recordEnvironment('p-1', inProduction, 'remembered');
    way.fail('publish');
    await one.recordEnvironment('p-1', inSandbox, 'remembered');
    way.fail();
    assert.deepEqual(new Set(await one.environmentsOf('p-1', 'shop')), new Set([inProduction, inSandbox]));
  });

  test('one payment whose record cannot be read does not keep the others from being told', async () => {
    const { shared, way, one, other } = startTwo();
    way.fail();
    for (const id of ['p-1', 'p-2']) await one.recordEnvironment(id, inSandbox, 'remembered');
    const [broken = ''] = way.operations.map((operation) => operation.replace(/^\S+ /, ''));
    await shared.keyValues.write(broken, 'no record');
    way.recover();
    assert.equal((await errorOf(() => one.flush())).code, 'STATE_UNAVAILABLE');
    assert.equal((await errorOf(() => one.flush())).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await other.environmentsOf('p-2', 'shop'), [inSandbox]);

    await shared.keyValues.remove(broken);
    await one.flush();
    assert.deepEqual(await other.environmentsOf('p-1', 'shop'), [inSandbox]);
  });
});
