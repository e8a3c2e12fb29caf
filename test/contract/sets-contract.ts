/** What Sets promise, wherever they are kept. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Sets } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

/** Puts the sets of a kind of state to the test. */
export function testSets({ skip, store }: StateUnderTest): void {
  describe('sets', { skip }, () => {
    test('a member is seen by every client, once, until it is removed', async (t) => {
      const { client } = await store(t);
      const [one, other] = [(await client()).sets, (await client()).sets];
      assert.deepEqual(await one.members('set'), []);

      await one.add('set', 'first');
      await other.add('set', 'second');
      await other.add('set', 'first');
      assert.deepEqual(await membersOf(one), ['first', 'second']);
      assert.deepEqual(await membersOf(other), ['first', 'second']);

      await other.remove('set', 'first');
      assert.deepEqual(await membersOf(one), ['second']);
      await one.remove('set', 'first'); // not there: nothing happens
      await one.remove('set', 'second');
      assert.deepEqual(await membersOf(other), []);
      await one.remove('set', 'second');
      await one.add('set', 'second');
      assert.deepEqual(await membersOf(other), ['second']);
    });

    test('members of any spelling are different members', async (t) => {
      const { sets } = await (await store(t)).client();
      const odd = [
        '',
        ' ',
        'a',
        'A',
        'a\0',
        '\uFEFF\r\n\u2028',
        '€ 𝄞',
        'é',
        'e\u0301',
        '1',
        '01',
        '__proto__',
      ];
      for (const member of odd) await sets.add('set', member);
      assert.deepEqual(await membersOf(sets), odd.toSorted());
      for (const member of odd) await sets.remove('set', member);
      assert.deepEqual(await membersOf(sets), []);
    });

    test('half of a character that was cut is kept as U+FFFD, and can be removed', async (t) => {
      const { sets } = await (await store(t)).client();
      await sets.add('set', 'a\uD834');
      assert.deepEqual(await membersOf(sets), ['a\uFFFD']);
      await sets.remove('set', 'a\uD834');
      assert.deepEqual(await membersOf(sets), []);
    });

    test('sets of any name, and under different prefixes, are different sets', async (t) => {
      const { client, otherClient } = await store(t);
      const [ours, theirs] = [(await client()).sets, (await otherClient()).sets];
      const keys = ['set', 'Set', 'set ', '{set}', '', 'é', 'e\u0301', '__proto__'];
      for (const key of keys) await ours.add(key, `member of ${key}`);
      for (const key of keys) assert.deepEqual(await ours.members(key), [`member of ${key}`]);
      assert.deepEqual(await theirs.members('set'), []);
      await theirs.remove('set', 'member of set');
      assert.deepEqual(await ours.members('set'), ['member of set']);
    });

    test('a thousand members that come at once are all there, and only those that went are gone', async (t) => {
      const { client } = await store(t);
      const clients = [(await client()).sets, (await client()).sets, (await client()).sets];
      const all = Array.from({ length: 1_000 }, (_, index) => `member ${index}`);
      await Promise.all(all.map((member, index) => clients[index % 3]?.add('set', member)));
      assert.deepEqual(await membersOf(clients[0]), all.toSorted());

      const [gone, kept] = [all.filter((_, index) => index % 2), all.filter((_, index) => !(index % 2))];
      await Promise.all(gone.map((member, index) => clients[index % 3]?.remove('set', member)));
      assert.deepEqual(await membersOf(clients[1]), kept.toSorted());
    });

    test('a member outlives the values around it', async (t) => {
      const { client, until } = await store(t);
      const { sets, keyValues } = await client();
      await sets.add('set', 'member');
      await keyValues.write('value', 'short', 50);
      await until(5_000, 'the value has expired', async () => (await keyValues.read('value')) === undefined);
      for (let count = 0; count < 10; count++) await keyValues.write(`value ${count}`, 'short', 50);
      assert.deepEqual(await membersOf(sets), ['member']);
    });
  });
}

const membersOf = async (sets: Sets | undefined) => (await sets?.members('set'))?.toSorted();
