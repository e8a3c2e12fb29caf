import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createActiveEnvironment } from '../../../src/environments/active-environment.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { until } from '../../kit/within.ts';
import { errorOf } from './requests.ts';

describe('the active environment', () => {
  test('is the configured one in a new installation, and nothing is known before it was read', async () => {
    const instance = instanceOn(createMemoryState(), 'production');
    assert.equal(instance.known(), undefined);
    const { environment, version } = await instance.read();
    assert.deepEqual({ environment, version }, { environment: 'production', version: 1 });
    assert.deepEqual(instance.known(), await instance.read());
  });

  test('is what the state says, whatever an instance that starts later is configured with', async () => {
    const state = createMemoryState();
    await instanceOn(state, 'sandbox').switchTo('production');
    assert.equal((await instanceOn(state, 'sandbox').read()).environment, 'production');
    assert.equal((await instanceOn(state, 'staging').read()).environment, 'production');
  });

  test('is one value for instances that start at the same moment with different configurations', async () => {
    const state = createMemoryState();
    const [one, other] = await Promise.all([
      instanceOn(state, 'sandbox').read(),
      instanceOn(state, 'production').read(),
    ]);
    assert.deepEqual(one, other);
  });

  test('gets a higher version with every switch, to the same environment too', async () => {
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

  test('is followed by another instance at once, by the announcement alone', async () => {
    const state = createMemoryState();
    const other = instanceOn(state);
    await other.read();
    await instanceOn(state).switchTo('production');
    await until(2_000, 'the other instance follows', () => other.known()?.environment === 'production');
    assert.equal(other.known()?.version, 2);
  });

  test('is followed by an instance that missed the announcement when it looks next', async () => {
    const shared = createMemoryState();
    const mute = createFailingState(shared);
    const other = instanceOn(shared);
    await other.read();
    mute.fail('publish');
    await instanceOn(mute).switchTo('production');
    assert.equal(other.known()?.environment, 'sandbox');
    await heartbeat(other);
    assert.equal(other.known()?.environment, 'production');
  });

  test('of two switches at the same moment is one of the two, and both have versions of their own', async () => {
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

  test('can be switched whoever wrote it down: what counts is what it says, not how it is spaced', async () => {
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

describe('the active environment, if the state fails,', () => {
  test('is not known to an instance that never could read it', async () => {
    const state = createFailingState();
    state.fail();
    const instance = instanceOn(state);
    assert.equal((await errorOf(() => instance.read())).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known(), undefined);
  });

  test('stays what it was last known to be', async () => {
    const state = createFailingState();
    const instance = instanceOn(state);
    await instance.switchTo('production');
    state.fail();
    assert.equal((await errorOf(() => instance.read())).code, 'STATE_UNAVAILABLE');
    assert.equal(instance.known()?.environment, 'production');
  });

  test('is not switched', async () => {
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

  test('is not taken from a foreign value under its key, and the foreign value is left alone', async () => {
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

describe('a state that forgets the active environment', () => {
  test('is given it again by whoever remembers, and every instance says that it was emptied', async () => {
    const state = createMemoryState();
    const [one, other] = [instanceOn(state), instanceOn(state)];
    await one.switchTo('production');
    await heartbeat(other);
    assert.deepEqual([one.stateWasEmptied(), other.stateWasEmptied()], [false, false]);

    await state.keyValues.remove(key);
    await heartbeat(one);
    await heartbeat(other);

    for (const instance of [one, other]) {
      assert.equal(instance.known()?.environment, 'production');
      assert.equal(instance.known()?.version, 2);
      assert.equal(instance.stateWasEmptied(), true);
      assert.equal(instance.lines.filter(({ level }) => level === 'error').length, 1);
    }
  });

  test('and comes back from an old backup is set right: the highest version wins', async () => {
    const state = createMemoryState();
    const instance = instanceOn(state);
    await instance.read();
    const backup = (await state.keyValues.read(key)) ?? '';
    await instance.switchTo('production');
    await instance.switchTo('staging');

    await state.keyValues.write(key, backup);
    await heartbeat(instance);

    assert.equal((await instanceOn(state).read()).environment, 'staging');
    assert.equal(instance.stateWasEmptied(), true);
  });

  test('is set right although a fresh instance began anew before: it follows, and says so', async () => {
    const state = createMemoryState();
    const old = instanceOn(state);
    await old.switchTo('production');
    await state.keyValues.remove(key);
    const fresh = instanceOn(state, 'sandbox');
    assert.equal((await fresh.read()).environment, 'sandbox');

    await heartbeat(old);
    await heartbeat(fresh);

    assert.equal(fresh.known()?.environment, 'production');
    assert.deepEqual([old.stateWasEmptied(), fresh.stateWasEmptied()], [true, true]);
  });

  test('is noticed by a switch, too, which builds on what is remembered', async () => {
    const state = createMemoryState();
    const instance = instanceOn(state);
    await instance.switchTo('production');
    await state.keyValues.remove(key);
    const { from, to } = await instance.switchTo('staging');
    assert.deepEqual([from.environment, to.environment, to.version], ['production', 'staging', 3]);
    assert.equal(instance.stateWasEmptied(), true);
  });
});

// MERGED HEADER (rewrite or remove):
/* Instances of the gateway that share the active environment. */

/** Where the state keeps it. */
export const key = 'environment:active';

/** One instance of the gateway on a state that others may share. */
export function instanceOn(state: State, configured = 'sandbox') {
  const { log, lines } = captureLog();
  return { ...createActiveEnvironment(state, configured, log), lines };
}

/** The next regular look at the state, as the heartbeat takes it. */
export const heartbeat = (instance: ReturnType<typeof instanceOn>) => instance.read();
