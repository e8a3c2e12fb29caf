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

/** Two instances, each with its own connection to one state. */
function startTwo() {
  const shared = createMemoryState();
  const [connection, otherConnection] = [createFailingState(shared), createFailingState(shared)];
  const { log, lines } = captureLog();
  const one = createAffinityStore(connection, 400 * dayMs, log);
  const other = createAffinityStore(otherConnection, 400 * dayMs, log);
  return { shared, connection, one, other, lines };
}

describe('while the shared state is out of reach', () => {
  test('an instance goes on with what it learnt or read, for as long as that lasts', async (t) => {
    const pass = useFakeClocks(t);
    const { connection, one, other } = startTwo();
    await one.recordEnvironment('learnt', inSandbox, 'expiring');
    await other.recordEnvironment('read', inProduction, 'expiring');
    await one.environmentsOf('read', 'shop');
    connection.fail();
    pass(3_600_000);
    assert.deepEqual(await one.environmentsOf('learnt', 'shop'), [inSandbox]);
    assert.deepEqual(await one.environmentsOf('read', 'shop'), [inProduction]);
  });

  test('a payment that it does not remember is refused, not called unknown', async () => {
    const { connection, one } = startTwo();
    connection.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test("a payment that it remembers as another tenant's is refused, for it may be this one's too", async () => {
    const { connection, one } = startTwo();
    await one.recordEnvironment('p-1', rivals, 'expiring');
    connection.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await one.environmentsOf('p-1', 'rival'), [rivals]);
  });

  test('what is learnt is remembered at once, loudly, and told to the state later', async () => {
    const { connection, one, other, lines } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['error'],
    );
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inSandbox]);
    assert.deepEqual(await other.environmentsOf('p-1', 'shop'), []);
    assert.equal((await errorOf(() => one.flush())).code, 'STATE_UNAVAILABLE');

    connection.recover();
    await one.flush();
    assert.deepEqual(await other.environmentsOf('p-1', 'shop'), [inSandbox]);
  });

  test('nothing is told twice', async () => {
    const { connection, one } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    connection.recover();
    await one.flush();
    const { length } = connection.operations;
    await one.flush();
    assert.equal(connection.operations.length, length);
  });

  test('what is told later joins what others have learnt meanwhile', async () => {
    const { connection, one, other } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    connection.recover();
    await one.flush();
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inProduction, inSandbox]);
    await until(
      2_000,
      'the other sees both',
      async () => (await other.environmentsOf('p-1', 'shop')).length === 2,
    );
  });

  test('what is not told yet is remembered, whatever others announce meanwhile', async () => {
    const { shared, connection, one, other } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    await other.recordEnvironment('p-1', rivals, 'expiring');
    let heard = false;
    shared.pubsub.subscribe('payment', () => {
      heard = true;
    });
    await until(2_000, 'the announcement has been heard', () => heard);

    const { code } = await errorOf(() => one.environmentsOf('p-1', 'shop'));
    assert.equal(code, 'STATE_UNAVAILABLE', 'there are other homes, and which is not known');
    connection.recover();
    assert.deepEqual(
      new Set(await one.environmentsOf('p-1', 'shop')),
      new Set([inSandbox, inProduction, rivals]),
    );
  });

  test('what another instance has announced a second home of is refused: it would be a guess', async () => {
    const { shared, connection, one, other } = startTwo();
    let heard = false;
    shared.pubsub.subscribe('payment', () => {
      heard = true;
    });
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    await until(2_000, 'the announcement has been heard', () => heard);
    connection.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test('what was read to add a home to it is remembered, though nobody could be told', async () => {
    const { connection, one, other } = startTwo();
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    connection.fail('publish');
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    connection.fail();
    assert.deepEqual(new Set(await one.environmentsOf('p-1', 'shop')), new Set([inProduction, inSandbox]));
  });

  test('one payment whose record cannot be read does not keep the others from being told', async () => {
    const { shared, connection, one, other } = startTwo();
    connection.fail();
    for (const id of ['p-1', 'p-2']) await one.recordEnvironment(id, inSandbox, 'expiring');
    const [broken = ''] = connection.operations.map((operation) => operation.replace(/^\S+ /, ''));
    await shared.keyValues.write(broken, 'no record');
    connection.recover();
    assert.equal((await errorOf(() => one.flush())).code, 'STATE_UNAVAILABLE');
    assert.equal((await errorOf(() => one.flush())).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await other.environmentsOf('p-2', 'shop'), [inSandbox]);

    await shared.keyValues.remove(broken);
    await one.flush();
    assert.deepEqual(await other.environmentsOf('p-1', 'shop'), [inSandbox]);
  });
});
