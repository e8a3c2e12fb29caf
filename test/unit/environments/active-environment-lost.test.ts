import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMemoryState } from '../../../src/state/memory.ts';
import { beat, instanceOn, key } from './active-instances.ts';

describe('a state that forgets the active environment', () => {
  test('is given it again by whoever remembers, and every instance says that it was emptied', async () => {
    const state = createMemoryState();
    const [one, other] = [instanceOn(state), instanceOn(state)];
    await one.change('production');
    await beat(other);
    assert.deepEqual([one.stateWasEmptied(), other.stateWasEmptied()], [false, false]);

    await state.keyValues.remove(key);
    await beat(one);
    await beat(other);

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
    await instance.change('production');
    await instance.change('staging');

    await state.keyValues.write(key, backup);
    await beat(instance);

    assert.equal((await instanceOn(state).read()).environment, 'staging');
    assert.equal(instance.stateWasEmptied(), true);
  });

  test('is set right although a fresh instance began anew before: it follows, and says so', async () => {
    const state = createMemoryState();
    const old = instanceOn(state);
    await old.change('production');
    await state.keyValues.remove(key);
    const fresh = instanceOn(state, 'sandbox');
    assert.equal((await fresh.read()).environment, 'sandbox');

    await beat(old);
    await beat(fresh);

    assert.equal(fresh.known()?.environment, 'production');
    assert.deepEqual([old.stateWasEmptied(), fresh.stateWasEmptied()], [true, true]);
  });

  test('is noticed by a switch, too, which builds on what is remembered', async () => {
    const state = createMemoryState();
    const instance = instanceOn(state);
    await instance.change('production');
    await state.keyValues.remove(key);
    const { from, to } = await instance.change('staging');
    assert.deepEqual([from.environment, to.environment, to.version], ['production', 'staging', 3]);
    assert.equal(instance.stateWasEmptied(), true);
  });
});
