/** The contract tests of `Journals`, which every implementation of the state must pass. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { maxJournalTexts } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

const hourMs = 3_600_000;

export function testJournals({ skip, createStore }: StateUnderTest): void {
  describe('journals', { skip }, () => {
    test('every client reads all texts in the order in which they were appended, equal ones as well', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).journals, (await client()).journals];
      assert.deepEqual(await one.read('journal'), []);

      await one.append('journal', ['first', 'second'], hourMs);
      await other.append('journal', ['first'], hourMs);
      await other.append('journal', [], hourMs);
      assert.deepEqual(await one.read('journal'), ['first', 'second', 'first']);
      assert.deepEqual(await other.read('journal'), ['first', 'second', 'first']);
    });

    test('a text is read back as it was appended, except a lone surrogate', async (t) => {
      const { journals } = await (await createStore(t)).client();
      const unusual = ['', ' ', 'a\0b', '\uFEFF\r\n\u2028', '€ 𝄞', '1', '{"a":1}', 'x'.repeat(10_000)];
      await journals.append('journal', [...unusual, '\uD800'], hourMs);
      assert.deepEqual(await journals.read('journal'), [...unusual, '\uFFFD']);
    });

    test('concurrent appends lose nothing', async (t) => {
      const { client } = await createStore(t);
      const clients = [(await client()).journals, (await client()).journals];
      const all = Array.from({ length: 200 }, (_, index) => `text ${index}`);
      await Promise.all(all.map((text, index) => clients[index % 2]?.append('journal', [text], hourMs)));
      assert.deepEqual([...((await clients[0]?.read('journal')) ?? [])].toSorted(), all.toSorted());
    });

    test('a journal belongs to its key and prefix, also if one key begins with another', async (t) => {
      const { client, otherClient } = await createStore(t);
      const [{ journals, keyValues }, theirs] = [await client(), (await otherClient()).journals];
      for (const key of ['journal', 'journal:1', 'journa', 'journal\uFFFD'])
        await journals.append(key, [key], hourMs);
      await keyValues.write('journal:value', 'a value');
      for (const key of ['journal', 'journal:1', 'journa', 'journal\uFFFD'])
        assert.deepEqual(await journals.read(key), [key]);
      assert.equal(await keyValues.read('journal:value'), 'a value');
      assert.deepEqual(await theirs.read('journal'), []);
    });

    test('a journal expires as a whole, after the time to live of its last append', async (t) => {
      const { client, now, until } = await createStore(t);
      const { journals } = await client();
      await journals.append('journal', ['old'], 60);
      await journals.append('journal', ['new'], hourMs);
      await journals.append('short', ['text'], 60);
      const startedMs = now();
      await until(
        5_000,
        'the other journal expires',
        async () => (await journals.read('short')).length === 0,
      );
      await until(5_000, 'time passes', () => now() - startedMs > 60);
      assert.deepEqual(await journals.read('journal'), ['old', 'new']);

      await journals.append('journal', ['newest'], 60);
      await until(5_000, 'the journal expires', async () => (await journals.read('journal')).length === 0);
      await journals.append('journal', ['next'], hourMs);
      assert.deepEqual(await journals.read('journal'), ['next']);
    });

    test('a journal keeps its newest texts', async (t) => {
      const { journals } = await (await createStore(t)).client();
      const all = Array.from({ length: maxJournalTexts + 20 }, (_, index) => `text ${index}`);
      for (let start = 0; start < all.length; start += 500)
        await journals.append('journal', all.slice(start, start + 500), hourMs);
      assert.deepEqual(await journals.read('journal'), all.slice(20));
    });
  });
}
