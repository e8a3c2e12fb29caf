/** The contract tests of `Sets`, which every implementation of the state must pass. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Sets } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

export function testSets({ skip, createStore }: StateUnderTest): void {
  describe('sets', { skip }, () => {
    test('every client reads each member once, until the member is removed', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).sets, (await client()).sets];
      assert.deepEqual(await one.members('set'), []);

      await one.add('set', 'first');
      await other.add('set', 'second');
      await other.add('set', 'first');
      assert.deepEqual(await membersOf(one), ['first', 'second']);
      assert.deepEqual(await membersOf(other), ['first', 'second']);

      await other.remove('set', 'first');
      assert.deepEqual(await membersOf(one), ['second']);
      await one.remove('set', 'first'); // already removed: no effect
      await one.remove('set', 'second');
      assert.deepEqual(await membersOf(other), []);
      await one.remove('set', 'second');
      await one.add('set', 'second');
      assert.deepEqual(await membersOf(other), ['second']);
    });

    test('members that differ in any character are different members', async (t) => {
      const { sets } = await (await createStore(t)).client();
      const unusual = [
        ...['', ' ', 'a', 'A', 'a\0', '\uFEFF\r\n\u2028', '€ 𝄞'],
        ...['é', 'e\u0301', '1', '01', '__proto__'],
      ];
      for (const member of unusual) await sets.add('set', member);
      assert.deepEqual(await membersOf(sets), unusual.toSorted());
      for (const member of unusual) await sets.remove('set', member);
      assert.deepEqual(await membersOf(sets), []);
    });

    test('a lone surrogate is stored as U+FFFD, and can be removed', async (t) => {
      const { sets } = await (await createStore(t)).client();
      await sets.add('set', 'a\uD834');
      assert.deepEqual(await membersOf(sets), ['a\uFFFD']);
      await sets.remove('set', 'a\uD834');
      assert.deepEqual(await membersOf(sets), []);
    });

    test('sets with different keys or prefixes are independent', async (t) => {
      const { client, otherClient } = await createStore(t);
      const [ours, theirs] = [(await client()).sets, (await otherClient()).sets];
      const keys = ['set', 'Set', 'set ', '{set}', '', 'é', 'e\u0301', '__proto__'];
      for (const key of keys) await ours.add(key, `member of ${key}`);
      for (const key of keys) assert.deepEqual(await ours.members(key), [`member of ${key}`]);
      assert.deepEqual(await theirs.members('set'), []);
      await theirs.remove('set', 'member of set');
      assert.deepEqual(await ours.members('set'), ['member of set']);
    });

    test('concurrent additions and removals of a thousand members are all applied', async (t) => {
      const { client } = await createStore(t);
      const clients = [(await client()).sets, (await client()).sets, (await client()).sets];
      const all = Array.from({ length: 1_000 }, (_, index) => `member ${index}`);
      await Promise.all(all.map((member, index) => clients[index % 3]?.add('set', member)));
      assert.deepEqual(await membersOf(clients[0]), all.toSorted());

      const [removed, remaining] = [
        all.filter((_, index) => index % 2),
        all.filter((_, index) => !(index % 2)),
      ];
      await Promise.all(removed.map((member, index) => clients[index % 3]?.remove('set', member)));
      assert.deepEqual(await membersOf(clients[1]), remaining.toSorted());
    });

    test('a member remains in its set when key-value entries expire', async (t) => {
      const { client, until } = await createStore(t);
      const { sets, keyValues } = await client();
      await sets.add('set', 'member');
      await keyValues.write('value', 'short', 50);
      await until(5_000, 'the value expires', async () => (await keyValues.read('value')) === undefined);
      for (let count = 0; count < 10; count++) await keyValues.write(`value ${count}`, 'short', 50);
      assert.deepEqual(await membersOf(sets), ['member']);
    });
  });
}

const membersOf = async (sets: Sets | undefined) => (await sets?.members('set'))?.toSorted();
