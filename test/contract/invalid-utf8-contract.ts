/** What KeyValues promise of bytes that somebody else has put in the place of a value, and that are no text. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { StateUnderTest, TestStore } from './state-contract.ts';

/** Where others can put bytes in the place of a client's value. */
export interface RawTestStore extends TestStore {
  writeBytes(key: string, bytes: Buffer): Promise<unknown>;
}

export interface RawStateUnderTest extends StateUnderTest {
  store(t: TestContext): Promise<RawTestStore>;
}

const invalidBytes: Readonly<Record<string, Buffer>> = {
  'a character that was cut': Buffer.from('{"a":"€"}').subarray(0, -4),
  'a byte that begins no character': Buffer.from('{"a":"\xFF"}', 'latin1'),
  'half of a surrogate pair': Buffer.from([0xed, 0xa0, 0x80]),
  'a character in more bytes than it takes': Buffer.from([0xc0, 0x80, 0x41]),
  'noise of 300 KB': Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * index) % 251)),
};

/** Puts the key-values of a kind of state to the test. */
export function testInvalidUtf8({ skip, store }: RawStateUnderTest): void {
  describe('a value that is no text any more', { skip }, () => {
    for (const [name, bytes] of Object.entries(invalidBytes)) {
      test(`is replaced as it is read, by one of many: ${name}`, async (t) => {
        const { client, writeBytes } = await store(t);
        const { keyValues } = await client();
        await writeBytes('key', bytes);
        const text = (await keyValues.read('key')) ?? '';
        assert.match(text, /\uFFFD/);
        const tries = Array.from({ length: 5 }, (_, index) => `text ${index}`);
        const done = await Promise.all(tries.map((next) => keyValues.replace('key', text, next)));
        assert.equal(done.filter(Boolean).length, 1);
        assert.equal(await keyValues.read('key'), tries[done.indexOf(true)]);
      });

      test(`lives, once replaced, for as long as it is given: ${name}`, async (t) => {
        const { client, writeBytes, until } = await store(t);
        const { keyValues } = await client();
        await writeBytes('key', bytes);
        assert.equal(await keyValues.replace('key', (await keyValues.read('key')) ?? '', 'text', 50), true);
        await until(5_000, 'it has expired', async () => (await keyValues.read('key')) === undefined);
      });

      test(`is not replaced in place of another text: ${name}`, async (t) => {
        const { client, writeBytes } = await store(t);
        const { keyValues } = await client();
        await writeBytes('key', bytes);
        const text = (await keyValues.read('key')) ?? '';
        assert.equal(await keyValues.replace('key', `${text}\uFFFD`, 'text'), false);
        assert.equal(await keyValues.replace('another key', text, 'text'), false);
        assert.equal(await keyValues.read('key'), text);
      });
    }

    test('is compared as it is read with half of a character, too', async (t) => {
      const { client, writeBytes } = await store(t);
      const { keyValues } = await client();
      await writeBytes('key', Buffer.from([0x61, 0xff]));
      assert.equal(await keyValues.replace('key', 'a\uD834', 'text'), true);
    });
  });
}
