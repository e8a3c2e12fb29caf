/** What KeyValues promise, wherever they are kept. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeyValues } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

/** Long enough for a slow machine to read a value before it expires, short enough to wait for. */
const ttlMs = 300;
const patienceMs = 5_000;

/** Puts the key-values of a kind of state to the test. */
export function testKeyValues({ skip, store }: StateUnderTest): void {
  describe('key-values', { skip }, () => {
    test('a value is read by every client until it is removed', async (t) => {
      const { client } = await store(t);
      const [one, other] = [await client(), await client()];
      assert.equal(await one.keyValues.read('key'), undefined);

      await one.keyValues.write('key', 'first');
      assert.equal(await other.keyValues.read('key'), 'first');
      await other.keyValues.write('key', 'second');
      assert.equal(await one.keyValues.read('key'), 'second');

      await one.keyValues.remove('key');
      assert.equal(await other.keyValues.read('key'), undefined);
      await one.keyValues.remove('key'); // nothing there: nothing happens
    });

    const odd = {
      'an empty text': '',
      'one with NUL, line breaks and a byte order mark': '\uFEFF\0a\0\r\nb\u2028\0',
      'one beyond the basic plane': '€ 𝄞 👩‍👩‍👧 e\u0301',
      'one that looks like an answer of the store': '$-1\r\n+OK\r\n',
      'one of a mebibyte': 'x€'.repeat(2 ** 18),
    };
    for (const [name, value] of Object.entries(odd)) {
      test(`${name} comes back as it was written, and can be replaced`, async (t) => {
        const { keyValues } = await (await store(t)).client();
        await keyValues.write('odd', value);
        assert.equal(await keyValues.read('odd'), value);
        assert.equal(await keyValues.replace('odd', value, `${value}!`), true);
        assert.equal(await keyValues.read('odd'), `${value}!`);
      });
    }

    test('half of a character that was cut is kept as U+FFFD', async (t) => {
      const { keyValues } = await (await store(t)).client();
      await keyValues.write('cut', 'a\uD834');
      assert.equal(await keyValues.read('cut'), 'a\uFFFD');
      assert.equal(await keyValues.replace('cut', 'a\uD834', 'whole'), true);
    });

    test('keys of any spelling are different keys', async (t) => {
      const { keyValues } = await (await store(t)).client();
      const keys = ['a', 'A', 'a ', 'a:b', '{a}b', 'a*', '', 'é', 'e\u0301', '__proto__'];
      for (const key of keys) await keyValues.write(key, `value of ${key}`);
      for (const key of keys) assert.equal(await keyValues.read(key), `value of ${key}`);
    });

    test('clients under different prefixes never see each other', async (t) => {
      const { client, otherClient } = await store(t);
      const [ours, theirs] = [(await client()).keyValues, (await otherClient()).keyValues];
      await ours.write('key', 'ours');
      assert.equal(await theirs.read('key'), undefined);
      assert.equal(await theirs.writeIfAbsent('key', 'theirs'), true);
      await theirs.remove('key');
      assert.equal(await ours.read('key'), 'ours');
    });

    describe('of a hundred at once', () => {
      test('each is kept under its own key', async (t) => {
        const { keyValues } = await (await store(t)).client();
        const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`);
        await Promise.all(keys.map((key) => keyValues.write(key, `value of ${key}`)));
        const values = await Promise.all(keys.map((key) => keyValues.read(key)));
        assert.deepEqual(
          values,
          keys.map((key) => `value of ${key}`),
        );
      });

      test('one alone writes what was absent', async (t) => {
        const { client } = await store(t);
        const clients = [await client(), await client(), await client()];
        const tries = Array.from({ length: 100 }, (_, index) => index);
        const won = await Promise.all(
          tries.map((index) => clients[index % 3]?.keyValues.writeIfAbsent('claim', `${index}`, 60_000)),
        );
        assert.equal(won.filter(Boolean).length, 1);
        assert.equal(await clients[0]?.keyValues.read('claim'), String(won.indexOf(true)));
      });

      test('no update by replacement is lost', async (t) => {
        const { client } = await store(t);
        const clients = [await client(), await client(), await client(), await client()];
        await clients[0]?.keyValues.write('count', '0');
        await Promise.all(clients.map(({ keyValues }) => addTo(keyValues, 'count', 25)));
        assert.equal(await clients[0]?.keyValues.read('count'), '100');
      });
    });

    test('a value is not replaced if it is absent or another one', async (t) => {
      const { keyValues } = await (await store(t)).client();
      assert.equal(await keyValues.replace('key', '', 'new'), false);
      assert.equal(await keyValues.replace('key', 'old', 'new'), false);
      await keyValues.write('key', 'other');
      assert.equal(await keyValues.replace('key', 'old', 'new'), false);
      assert.equal(await keyValues.read('key'), 'other');
    });
  });

  describe('lives of key-values', { skip }, () => {
    const ways: Record<string, (keyValues: KeyValues, ttl?: number) => Promise<unknown>> = {
      written: (keyValues, ttl) => keyValues.write('key', 'value', ttl),
      'written where none was': (keyValues, ttl) => keyValues.writeIfAbsent('key', 'value', ttl),
      async replaced(keyValues, ttl) {
        await keyValues.write('key', 'old', 60_000);
        await keyValues.replace('key', 'old', 'value', ttl);
      },
    };
    for (const [how, write] of Object.entries(ways)) {
      test(`a value ${how} lives as long as it was given, and not longer`, async (t) => {
        const { client, now, until } = await store(t);
        const { keyValues } = await client();
        const start = now();
        await write(keyValues, ttlMs);
        assert.equal(await keyValues.read('key'), 'value');
        await until(patienceMs, 'it has expired', async () => (await keyValues.read('key')) === undefined);
        assert.ok(now() - start >= ttlMs - 2, `it lived for ${now() - start} ms`);

        assert.equal(await keyValues.replace('key', 'value', 'late'), false);
        assert.equal(await keyValues.writeIfAbsent('key', 'next'), true);
      });

      test(`a value ${how} without a time lives on, whatever was there before`, async (t) => {
        const { client, now, until } = await store(t);
        const { keyValues } = await client();
        await keyValues.write('key', 'value before', 50);
        if (how !== 'written') await keyValues.remove('key');
        await write(keyValues);
        const start = now();
        await until(patienceMs, 'its time would be over', () => now() - start > 100);
        assert.equal(await keyValues.read('key'), 'value');
      });
    }

    test('a refused write does not prolong a life', async (t) => {
      const { client, now, until } = await store(t);
      const { keyValues } = await client();
      await keyValues.write('key', 'value', ttlMs);
      assert.equal(await keyValues.writeIfAbsent('key', 'other', 60_000), false);
      assert.equal(await keyValues.replace('key', 'other', 'value', 60_000), false);
      const start = now();
      await until(patienceMs, 'it has expired', async () => (await keyValues.read('key')) === undefined);
      assert.ok(now() - start <= ttlMs + 1_000);
    });

    test('a life may be a fraction of a millisecond, or four hundred days', async (t) => {
      const { client, until } = await store(t);
      const { keyValues } = await client();
      await keyValues.write('long', 'value', 400 * 86_400_000);
      await keyValues.write('short', 'value', 0.25);
      await until(patienceMs, 'it has expired', async () => (await keyValues.read('short')) === undefined);
      assert.equal(await keyValues.read('long'), 'value');
    });
  });
}

/** Adds one to a number, so many times, whoever else does. */
async function addTo(keyValues: KeyValues, key: string, times: number): Promise<void> {
  for (let done = 0; done < times; ) {
    const before = (await keyValues.read(key)) ?? '';
    if (await keyValues.replace(key, before, String(Number(before) + 1))) done++;
  }
}
