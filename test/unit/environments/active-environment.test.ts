import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createActiveEnvironment } from '../../../src/environments/active-environment.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createActiveEnvironmentTable } from '../../../src/store/active-environment.ts';
import type { Database } from '../../../src/store/database.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { until } from '../../kit/within.ts';
import { errorOf } from './requests.ts';

/** An instance of the gateway on a database that it may share with others. */
function instanceOn(database: Database, configured = 'sandbox', state: State = createMemoryState()) {
  const { log, lines } = captureLog();
  const table = createActiveEnvironmentTable(database);
  return { ...createActiveEnvironment(table, state.pubsub, configured, log), lines };
}

describe('the active environment', () => {
  test('is the configured one in a new database, and is unknown before the first read', async (t) => {
    const instance = instanceOn(await newGatewayDatabase(t), 'production');
    assert.equal(instance.known(), undefined);
    assert.deepEqual(await instance.read(), { environment: 'production', version: 1 });
    assert.deepEqual(instance.known(), await instance.read());
  });

  test('comes from the database, whatever a later instance is configured with', async (t) => {
    const database = await newGatewayDatabase(t);
    await instanceOn(database, 'sandbox').switchTo('production');
    assert.equal((await instanceOn(database, 'sandbox').read()).environment, 'production');
    assert.equal((await instanceOn(database, 'staging').read()).environment, 'production');
  });

  test('is the same for instances that start at the same time with different configurations', async (t) => {
    const database = await newGatewayDatabase(t);
    const [one, other] = await Promise.all([
      instanceOn(database, 'sandbox').read(),
      instanceOn(database, 'production').read(),
    ]);
    assert.deepEqual(one, other);
  });

  test('gets a higher version with every switch, also to the same environment', async (t) => {
    const instance = instanceOn(await newGatewayDatabase(t));
    const versions = [];
    for (const environment of ['production', 'sandbox', 'sandbox']) {
      const { from, to } = await instance.switchTo(environment);
      assert.equal(to.environment, environment);
      assert.equal(to.version, from.version + 1);
      versions.push(to.version);
    }
    assert.deepEqual(versions, [2, 3, 4]);
  });

  test('reaches another instance through the published message', async (t) => {
    const database = await newGatewayDatabase(t);
    const messages = createMemoryState();
    const other = instanceOn(database, 'sandbox', messages);
    await other.read();
    await instanceOn(database, 'sandbox', messages).switchTo('production');
    await until(2_000, 'the other instance follows', () => other.known()?.environment === 'production');
    assert.equal(other.known()?.version, 2);
  });

  test('reaches an instance that missed the message with its next read', async (t) => {
    const database = await newGatewayDatabase(t);
    const messages = createMemoryState();
    const mute = createFailingState(messages);
    const other = instanceOn(database, 'sandbox', messages);
    await other.read();
    mute.fail('publish');
    await instanceOn(database, 'sandbox', mute).switchTo('production');
    assert.equal(other.known()?.environment, 'sandbox');
    await other.read();
    assert.equal(other.known()?.environment, 'production');
  });

  test('gets its own version in each of several concurrent switches, and keeps the last one', async (t) => {
    const database = await newGatewayDatabase(t);
    const [one, other] = [instanceOn(database), instanceOn(database)];
    await Promise.all([one.read(), other.read()]);
    const done = await Promise.all([
      one.switchTo('production'),
      other.switchTo('staging'),
      one.switchTo('drill'),
    ]);
    assert.deepEqual(done.map(({ to }) => to.version).toSorted(), [2, 3, 4]);
    const last = done.find(({ to }) => to.version === 4)?.to;
    assert.deepEqual(await instanceOn(database).read(), last);
    for (const { from, to } of done) {
      assert.equal(to.version, from.version + 1);
      const before = done.find((another) => another.to.version === from.version)?.to.environment ?? 'sandbox';
      assert.equal(from.environment, before, `version ${to.version} names the one it replaced`);
    }
  });

  test('is not set back by a read that began before a switch and ends after it', async (t) => {
    const database = createFaultyDatabase(await newGatewayDatabase(t));
    const instance = instanceOn(database);
    await instance.read();
    const unblock = database.block(/^SELECT environment/);
    const slow = instance.read();
    const { to } = await instance.switchTo('production');
    unblock();
    assert.deepEqual(await slow, to);
    assert.deepEqual(instance.known(), to);
  });

  test('is logged when it changes', async (t) => {
    const database = await newGatewayDatabase(t);
    const instance = instanceOn(database);
    await instance.read();
    await instanceOn(database).switchTo('production');
    await instance.read();
    await instance.read();
    assert.deepEqual(
      instance.lines.map(({ message, fields }) => [message, fields]),
      [
        ['active environment read from the database', { environment: 'sandbox', environmentVersion: 1 }],
        ['active environment read from the database', { environment: 'production', environmentVersion: 2 }],
      ],
    );
  });
});

describe('the active environment while the database is unavailable', () => {
  async function startInstance(t: Parameters<typeof newGatewayDatabase>[0]) {
    const database = createFaultyDatabase(await newGatewayDatabase(t));
    return { database, instance: instanceOn(database) };
  }

  test('is unknown to an instance that has never read it', async (t) => {
    const { database, instance } = await startInstance(t);
    database.fail('before');
    assert.equal((await errorOf(() => instance.read())).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known(), undefined);
  });

  test('is the last value that the instance read', async (t) => {
    const { database, instance } = await startInstance(t);
    await instance.switchTo('production');
    database.fail('before');
    assert.equal((await errorOf(() => instance.read())).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known()?.environment, 'production');
  });

  test('cannot be switched', async (t) => {
    const { database, instance } = await startInstance(t);
    await instance.read();
    for (const statement of [/^SELECT environment/, /^UPDATE/]) {
      database.fail('before', statement);
      assert.equal((await errorOf(() => instance.switchTo('production'))).code, 'STATE_UNAVAILABLE');
      assert.equal(instance.known()?.environment, 'sandbox');
    }
    database.recover();
    assert.equal((await instance.read()).environment, 'sandbox');
  });

  test('may have been switched if the answer was lost: the next read shows it', async (t) => {
    const { database, instance } = await startInstance(t);
    await instance.read();
    database.fail('after', /^UPDATE/);
    assert.equal((await errorOf(() => instance.switchTo('production'))).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known()?.environment, 'sandbox');
    assert.deepEqual(await instance.read(), { environment: 'production', version: 2 });
  });
});
