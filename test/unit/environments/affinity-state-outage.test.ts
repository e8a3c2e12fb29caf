/** Affinity while the shared state is unavailable: the cache answers for known payments, other requests are refused. */

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

/** Two instances with separate connections to one state. */
function startTwo() {
  const shared = createMemoryState();
  const [connection, otherConnection] = [createFailingState(shared), createFailingState(shared)];
  const { log, lines } = captureLog();
  const one = createAffinityStore(connection, 400 * dayMs, log);
  const other = createAffinityStore(otherConnection, 400 * dayMs, log);
  return { shared, connection, one, other, lines };
}

describe('affinity while the shared state is unavailable', () => {
  test('is served from the cache for payments that the instance recorded or read', async (t) => {
    const advance = useFakeClocks(t);
    const { connection, one, other } = startTwo();
    await one.recordEnvironment('recorded', inSandbox, 'expiring');
    await other.recordEnvironment('read', inProduction, 'expiring');
    await one.environmentsOf('read', 'shop');
    connection.fail();
    advance(3_600_000);
    assert.deepEqual(await one.environmentsOf('recorded', 'shop'), [inSandbox]);
    assert.deepEqual(await one.environmentsOf('read', 'shop'), [inProduction]);
  });

  test('fails for a payment that is not cached, and does not report it as unknown', async () => {
    const { connection, one } = startTwo();
    connection.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test('fails for a payment that is cached for another tenant only, because the state may know more', async () => {
    const { connection, one } = startTwo();
    await one.recordEnvironment('p-1', rivals, 'expiring');
    connection.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
    assert.deepEqual(await one.environmentsOf('p-1', 'rival'), [rivals]);
  });

  test('is cached at once, logged as an error, and stored in the state later', async () => {
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

  test('is stored in the state only once', async () => {
    const { connection, one } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    connection.recover();
    await one.flush();
    const { length } = connection.operations;
    await one.flush();
    assert.equal(connection.operations.length, length);
  });

  test('is merged with the affinities that other instances stored in between', async () => {
    const { connection, one, other } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    connection.recover();
    await one.flush();
    assert.deepEqual(await one.environmentsOf('p-1', 'shop'), [inProduction, inSandbox]);
    await until(
      2_000,
      'the other instance reads both',
      async () => (await other.environmentsOf('p-1', 'shop')).length === 2,
    );
  });

  test('is dropped and logged if another instance recorded another tenant in between', async () => {
    const { connection, one, other, lines } = startTwo();
    connection.fail();
    assert.equal(await one.recordEnvironment('p-1', rivals, 'expiring'), true);
    await other.recordEnvironment('p-1', inSandbox, 'expiring');
    connection.recover();
    for (let time = 0; time < 2; time++) {
      assert.deepEqual(await one.environmentsOf('p-1', 'rival'), [inSandbox]);
      await one.flush();
    }
    assert.ok(
      lines.some(({ message }) =>
        message.startsWith('a payment recorded during an outage belongs to another tenant'),
      ),
    );
  });

  test('is not lost while it is pending and others publish changes of the same payment', async () => {
    const elsewhere: PaymentAffinity = { environment: 'staging', tenant: 'rival' };
    const { shared, connection, one, other } = startTwo();
    connection.fail();
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    await other.recordEnvironment('p-1', elsewhere, 'expiring');
    let received = false;
    shared.pubsub.subscribe('payment', () => {
      received = true;
    });
    await until(2_000, 'the message is received', () => received);

    const { code } = await errorOf(() => one.environmentsOf('p-1', 'shop'));
    assert.equal(code, 'STATE_UNAVAILABLE', 'the payment has other affinities that are not cached');
    connection.recover();
    assert.deepEqual(
      new Set(await one.environmentsOf('p-1', 'shop')),
      new Set([inSandbox, inProduction, elsewhere]),
    );
  });

  test('fails for a payment to which another instance added a second affinity', async () => {
    const { shared, connection, one, other } = startTwo();
    let received = false;
    shared.pubsub.subscribe('payment', () => {
      received = true;
    });
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    await until(2_000, 'the message is received', () => received);
    connection.fail();
    assert.equal((await errorOf(() => one.environmentsOf('p-1', 'shop'))).code, 'STATE_UNAVAILABLE');
  });

  test('includes affinities that were read during a write, even if publishing failed', async () => {
    const { connection, one, other } = startTwo();
    await other.recordEnvironment('p-1', inProduction, 'expiring');
    connection.fail('publish');
    await one.recordEnvironment('p-1', inSandbox, 'expiring');
    connection.fail();
    assert.deepEqual(new Set(await one.environmentsOf('p-1', 'shop')), new Set([inProduction, inSandbox]));
  });

  test('is stored for other payments if the record of one payment cannot be read', async () => {
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
