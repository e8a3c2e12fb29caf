import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createActiveEnvironment } from '../../../src/environments/active-environment.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { until } from '../../kit/within.ts';
import { errorOf } from './requests.ts';

const key = 'environment:active';

/** An instance of the gateway on a state that it may share with others. */
function instanceOn(state: State, configured = 'sandbox') {
  const { log, lines } = captureLog();
  return { ...createActiveEnvironment(state, configured, log), lines };
}

describe('the active environment', () => {
  test('is the configured one in a new installation, and is unknown before the first read', async () => {
    const instance = instanceOn(createMemoryState(), 'production');
    assert.equal(instance.known(), undefined);
    const { environment, version } = await instance.read();
    assert.deepEqual({ environment, version }, { environment: 'production', version: 1 });
    assert.deepEqual(instance.known(), await instance.read());
  });

  test('comes from the state, whatever a later instance is configured with', async () => {
    const state = createMemoryState();
    await instanceOn(state, 'sandbox').switchTo('production');
    assert.equal((await instanceOn(state, 'sandbox').read()).environment, 'production');
    assert.equal((await instanceOn(state, 'staging').read()).environment, 'production');
  });

  test('is the same for instances that start at the same time with different configurations', async () => {
    const state = createMemoryState();
    const [one, other] = await Promise.all([
      instanceOn(state, 'sandbox').read(),
      instanceOn(state, 'production').read(),
    ]);
    assert.deepEqual(one, other);
  });

  test('gets a higher version with every switch, also to the same environment', async () => {
    const instance = instanceOn(createMemoryState());
    const versions = [];
    for (const environment of ['production', 'sandbox', 'sandbox']) {
      const { from, to } = await instance.switchTo(environment);
      assert.equal(to.environment, environment);
      assert.equal(to.version, from.version + 1);
      versions.push(to.version);
    }
    assert.deepEqual(versions, [2, 3, 4]);
  });

  test('reaches another instance through the published message', async () => {
    const state = createMemoryState();
    const other = instanceOn(state);
    await other.read();
    await instanceOn(state).switchTo('production');
    await until(2_000, 'the other instance follows', () => other.known()?.environment === 'production');
    assert.equal(other.known()?.version, 2);
  });

  test('reaches an instance that missed the message with its next read', async () => {
    const shared = createMemoryState();
    const mute = createFailingState(shared);
    const other = instanceOn(shared);
    await other.read();
    mute.fail('publish');
    await instanceOn(mute).switchTo('production');
    assert.equal(other.known()?.environment, 'sandbox');
    await other.read();
    assert.equal(other.known()?.environment, 'production');
  });

  test('gets its own version in each of several concurrent switches, and keeps the last one', async () => {
    const state = createMemoryState();
    const [one, other] = [instanceOn(state), instanceOn(state)];
    await Promise.all([one.read(), other.read()]);
    const done = await Promise.all([
      one.switchTo('production'),
      other.switchTo('staging'),
      one.switchTo('drill'),
    ]);
    assert.deepEqual(done.map(({ to }) => to.version).toSorted(), [2, 3, 4]);
    const last = done.find(({ to }) => to.version === 4)?.to;
    assert.deepEqual(await instanceOn(state).read(), last);
    for (const { from, to } of done) {
      const before = done.find((another) => another.to.version === from.version)?.to.environment ?? 'sandbox';
      assert.equal(from.environment, before, `version ${to.version} names the one it replaced`);
    }
  });

  test('can be switched if the stored JSON has other whitespace and fields', async () => {
    const state = createMemoryState();
    await state.keyValues.write(
      key,
      '{ "version": 7, "epoch": "e", "environment": "sandbox", "note": "by hand" }',
    );
    const { from, to } = await instanceOn(state).switchTo('production');
    assert.deepEqual([from.version, to.version], [7, 8]);
    assert.equal((await instanceOn(state).read()).environment, 'production');
  });
});

describe('the active environment while the state is unavailable', () => {
  test('is unknown to an instance that has never read it', async () => {
    const state = createFailingState();
    state.fail();
    const instance = instanceOn(state);
    assert.equal((await errorOf(() => instance.read())).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known(), undefined);
  });

  test('is the last value that the instance read', async () => {
    const state = createFailingState();
    const instance = instanceOn(state);
    await instance.switchTo('production');
    state.fail();
    assert.equal((await errorOf(() => instance.read())).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known()?.environment, 'production');
  });

  test('cannot be switched', async () => {
    const state = createFailingState();
    const instance = instanceOn(state);
    await instance.read();
    for (const operation of ['read', 'replace'] as const) {
      state.fail(operation);
      assert.equal((await errorOf(() => instance.switchTo('production'))).code, 'STATE_UNAVAILABLE');
      assert.equal(instance.known()?.environment, 'sandbox');
    }
    state.recover();
    assert.equal((await instance.read()).environment, 'sandbox');
  });

  test('is not read from a foreign value under its key, which is left alone', async () => {
    const foreign = [
      '',
      'sandbox',
      '"sandbox"',
      '{}',
      '[]',
      '{"environment":"sandbox","version":0,"epoch":"e"}',
    ];
    for (const value of foreign) {
      const state = createMemoryState();
      await state.keyValues.write(key, value);
      const instance = instanceOn(state);
      const { code, message } = await errorOf(() => instance.read());
      assert.equal(code, 'STATE_UNAVAILABLE');
      assert.match(message, /environment:active/);
      assert.equal((await errorOf(() => instance.switchTo('production'))).code, 'STATE_UNAVAILABLE');
      assert.equal(await state.keyValues.read(key), value);
      assert.equal(instance.known(), undefined);
    }
  });
});

describe('the active environment after the state lost it', () => {
  test('is written again by an instance that knows it, and every instance reports the loss', async () => {
    const state = createMemoryState();
    const [one, other] = [instanceOn(state), instanceOn(state)];
    await one.switchTo('production');
    await other.read();
    assert.deepEqual([one.stateWasEmptied(), other.stateWasEmptied()], [false, false]);

    await state.keyValues.remove(key);
    await one.read();
    await other.read();

    for (const instance of [one, other]) {
      assert.equal(instance.known()?.environment, 'production');
      assert.equal(instance.known()?.version, 2);
      assert.equal(instance.stateWasEmptied(), true);
      assert.equal(instance.lines.filter(({ level }) => level === 'error').length, 1);
    }
  });

  test('is the one with the highest version if the state was restored from an old backup', async () => {
    const state = createMemoryState();
    const instance = instanceOn(state);
    await instance.read();
    const backup = (await state.keyValues.read(key)) ?? '';
    await instance.switchTo('production');
    await instance.switchTo('staging');

    await state.keyValues.write(key, backup);
    await instance.read();

    assert.equal((await instanceOn(state).read()).environment, 'staging');
    assert.equal(instance.stateWasEmptied(), true);
  });

  test('replaces the value of a new instance, which follows and reports the loss', async () => {
    const state = createMemoryState();
    const old = instanceOn(state);
    await old.switchTo('production');
    await state.keyValues.remove(key);
    const fresh = instanceOn(state, 'sandbox');
    assert.equal((await fresh.read()).environment, 'sandbox');

    await old.read();
    await fresh.read();

    assert.equal(fresh.known()?.environment, 'production');
    assert.deepEqual([old.stateWasEmptied(), fresh.stateWasEmptied()], [true, true]);
  });

  test('is the starting point of a switch, which reports the loss', async () => {
    const state = createMemoryState();
    const instance = instanceOn(state);
    await instance.switchTo('production');
    await state.keyValues.remove(key);
    const { from, to } = await instance.switchTo('staging');
    assert.deepEqual([from.environment, to.environment, to.version], ['production', 'staging', 3]);
    assert.equal(instance.stateWasEmptied(), true);
  });
});
