/** The contract of KeyValues. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeyValues } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

/** Long enough to read a value on a slow machine before it expires, and short enough to wait for. */
const ttlMs = 300;
const timeoutMs = 5_000;

export function testKeyValues({ skip, createStore }: StateUnderTest): void {
  describe('key-value store', { skip }, () => {
    test('every client reads a value until it is removed', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [await client(), await client()];
      assert.equal(await one.keyValues.read('key'), undefined);

      await one.keyValues.write('key', 'first');
      assert.equal(await other.keyValues.read('key'), 'first');
      await other.keyValues.write('key', 'second');
      assert.equal(await one.keyValues.read('key'), 'second');

      await one.keyValues.remove('key');
      assert.equal(await other.keyValues.read('key'), undefined);
      await one.keyValues.remove('key'); // absent: no effect
    });

    const unusual = {
      'an empty text': '',
      'text with NUL, line breaks and a byte order mark': '\uFEFF\0a\0\r\nb\u2028\0',
      'text beyond the basic multilingual plane': '€ 𝄞 👩‍👩‍👧 e\u0301',
      'text that looks like an answer of Redis': '$-1\r\n+OK\r\n',
      'a text of one mebibyte': 'x€'.repeat(2 ** 18),
    };
    for (const [name, value] of Object.entries(unusual)) {
      test(`${name} is read as it was written, and can be replaced`, async (t) => {
        const { keyValues } = await (await createStore(t)).client();
        await keyValues.write('key', value);
        assert.equal(await keyValues.read('key'), value);
        assert.equal(await keyValues.replace('key', value, `${value}!`), true);
        assert.equal(await keyValues.read('key'), `${value}!`);
      });
    }

    test('a lone surrogate is stored as U+FFFD', async (t) => {
      const { keyValues } = await (await createStore(t)).client();
      await keyValues.write('key', 'a\uD834');
      assert.equal(await keyValues.read('key'), 'a\uFFFD');
      assert.equal(await keyValues.replace('key', 'a\uD834', 'text'), true);
    });

    test('keys that differ in any character are different keys', async (t) => {
      const { keyValues } = await (await createStore(t)).client();
      const keys = ['a', 'A', 'a ', 'a:b', '{a}b', 'a*', '', 'é', 'e\u0301', '__proto__'];
      for (const key of keys) await keyValues.write(key, `value of ${key}`);
      for (const key of keys) assert.equal(await keyValues.read(key), `value of ${key}`);
    });

    test('clients with different prefixes do not share keys', async (t) => {
      const { client, otherClient } = await createStore(t);
      const [ours, theirs] = [(await client()).keyValues, (await otherClient()).keyValues];
      await ours.write('key', 'ours');
      assert.equal(await theirs.read('key'), undefined);
      assert.equal(await theirs.writeIfAbsent('key', 'theirs'), true);
      await theirs.remove('key');
      assert.equal(await ours.read('key'), 'ours');
    });

    test('a value is not replaced if it is absent or differs from the expected one', async (t) => {
      const { keyValues } = await (await createStore(t)).client();
      assert.equal(await keyValues.replace('key', '', 'new'), false);
      assert.equal(await keyValues.replace('key', 'old', 'new'), false);
      await keyValues.write('key', 'other');
      assert.equal(await keyValues.replace('key', 'old', 'new'), false);
      assert.equal(await keyValues.read('key'), 'other');
    });

    test('removeIf removes a value only if it equals the expected one', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).keyValues, (await client()).keyValues];
      assert.equal(await one.removeIf('key', ''), false);
      await one.write('key', 'one');
      assert.equal(await other.removeIf('key', 'other'), false);
      assert.equal(await other.read('key'), 'one');
      assert.equal(await one.removeIf('key', 'one'), true);
      assert.equal(await other.read('key'), undefined);
      await one.write('key', 'a\uD834');
      assert.equal(await other.removeIf('key', 'a\uD834'), true);
      assert.equal(await one.removeIf('key', 'a\uD834'), false);
    });

    test('exactly one of a hundred concurrent removeIf calls succeeds', async (t) => {
      const { client } = await createStore(t);
      const clients = [await client(), await client(), await client()];
      await clients[0]?.keyValues.write('lease', 'holder');
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, index) => clients[index % 3]?.keyValues.removeIf('lease', 'holder')),
      );
      assert.equal(results.filter(Boolean).length, 1);
    });

    test('a hundred concurrent writes each set their own key', async (t) => {
      const { keyValues } = await (await createStore(t)).client();
      const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`);
      await Promise.all(keys.map((key) => keyValues.write(key, `value of ${key}`)));
      const values = await Promise.all(keys.map((key) => keyValues.read(key)));
      assert.deepEqual(
        values,
        keys.map((key) => `value of ${key}`),
      );
    });

    test('exactly one of a hundred concurrent writeIfAbsent calls succeeds', async (t) => {
      const { client } = await createStore(t);
      const clients = [await client(), await client(), await client()];
      const calls = Array.from({ length: 100 }, (_, index) => index);
      const results = await Promise.all(
        calls.map((index) => clients[index % 3]?.keyValues.writeIfAbsent('claim', `${index}`, 60_000)),
      );
      assert.equal(results.filter(Boolean).length, 1);
      assert.equal(await clients[0]?.keyValues.read('claim'), String(results.indexOf(true)));
    });

    test('no concurrent update by replace is lost', async (t) => {
      const { client } = await createStore(t);
      const clients = [await client(), await client(), await client(), await client()];
      await clients[0]?.keyValues.write('count', '0');
      await Promise.all(clients.map(({ keyValues }) => increment(keyValues, 'count', 25)));
      assert.equal(await clients[0]?.keyValues.read('count'), '100');
    });
  });

  describe('expiry of key-value pairs', { skip }, () => {
    const writes: Record<string, (keyValues: KeyValues, ttl?: number) => Promise<unknown>> = {
      write: (keyValues, ttl) => keyValues.write('key', 'value', ttl),
      writeIfAbsent: (keyValues, ttl) => keyValues.writeIfAbsent('key', 'value', ttl),
      async replace(keyValues, ttl) {
        await keyValues.write('key', 'old', 60_000);
        await keyValues.replace('key', 'old', 'value', ttl);
      },
    };
    for (const [operation, write] of Object.entries(writes)) {
      test(`a value set by ${operation} expires after its TTL`, async (t) => {
        const { client, now, until } = await createStore(t);
        const { keyValues } = await client();
        const start = now();
        await write(keyValues, ttlMs);
        const written = await keyValues.read('key');
        assert.ok(written === 'value' || now() - start >= ttlMs, `it expired after ${now() - start} ms`);
        await until(timeoutMs, 'it expires', async () => (await keyValues.read('key')) === undefined);
        assert.ok(now() - start >= ttlMs - 2, `it expired after ${now() - start} ms`);

        assert.equal(await keyValues.replace('key', 'value', 'late'), false);
        assert.equal(await keyValues.writeIfAbsent('key', 'next'), true);
      });

      test(`a value set by ${operation} without a TTL does not expire, even if an earlier value had one`, async (t) => {
        const { client, now, until } = await createStore(t);
        const { keyValues } = await client();
        await keyValues.write('key', 'earlier value', 50);
        if (operation !== 'write') await keyValues.remove('key');
        await write(keyValues);
        const start = now();
        await until(timeoutMs, 'the earlier TTL passes', () => now() - start > 100);
        assert.equal(await keyValues.read('key'), 'value');
      });
    }

    test('a refused write does not extend the TTL', async (t) => {
      const { client, until } = await createStore(t);
      const { keyValues } = await client();
      await keyValues.write('key', 'value', ttlMs);
      assert.equal(await keyValues.writeIfAbsent('key', 'other', 60_000), false);
      assert.equal(await keyValues.replace('key', 'other', 'value', 60_000), false);
      await until(timeoutMs, 'it expires', async () => (await keyValues.read('key')) === undefined);
    });

    test('a TTL can be a fraction of a millisecond or 400 days', async (t) => {
      const { client, until } = await createStore(t);
      const { keyValues } = await client();
      await keyValues.write('long', 'value', 400 * 86_400_000);
      await keyValues.write('short', 'value', 0.25);
      await until(timeoutMs, 'it expires', async () => (await keyValues.read('short')) === undefined);
      assert.equal(await keyValues.read('long'), 'value');
    });
  });
}

/** Increments a number by `times`, one at a time, with concurrent writers. */
async function increment(keyValues: KeyValues, key: string, times: number): Promise<void> {
  for (let done = 0; done < times; ) {
    const before = (await keyValues.read(key)) ?? '';
    if (await keyValues.replace(key, before, String(Number(before) + 1))) done++;
  }
}
