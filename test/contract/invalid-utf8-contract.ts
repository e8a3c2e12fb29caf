/** The contract of KeyValues for stored bytes that are not valid UTF-8, because another program wrote them. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { StateUnderTest, TestStore } from './state-contract.ts';

/** A store into which a test can write bytes directly. */
export interface RawTestStore extends TestStore {
  writeBytes(key: string, bytes: Buffer): Promise<unknown>;
}

export interface RawStateUnderTest extends StateUnderTest {
  createStore(t: TestContext): Promise<RawTestStore>;
}

const invalidBytes: Readonly<Record<string, Buffer>> = {
  'a truncated character': Buffer.from('{"a":"€"}').subarray(0, -4),
  'an invalid first byte': Buffer.from('{"a":"\xFF"}', 'latin1'),
  'an encoded surrogate': Buffer.from([0xed, 0xa0, 0x80]),
  'an overlong encoding': Buffer.from([0xc0, 0x80, 0x41]),
  '300 KB of noise': Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * index) % 251)),
};

export function testInvalidUtf8({ skip, createStore }: RawStateUnderTest): void {
  describe('stored bytes that are not valid UTF-8', { skip }, () => {
    for (const [name, bytes] of Object.entries(invalidBytes)) {
      test(`exactly one of several concurrent calls replaces ${name}, compared as it is read`, async (t) => {
        const { client, writeBytes } = await createStore(t);
        const { keyValues } = await client();
        await writeBytes('key', bytes);
        const text = (await keyValues.read('key')) ?? '';
        assert.match(text, /\uFFFD/);
        const values = Array.from({ length: 5 }, (_, index) => `text ${index}`);
        const results = await Promise.all(values.map((next) => keyValues.replace('key', text, next)));
        assert.equal(results.filter(Boolean).length, 1);
        assert.equal(await keyValues.read('key'), values[results.indexOf(true)]);
      });

      test(`a value that replaced ${name} expires after its TTL`, async (t) => {
        const { client, writeBytes, until } = await createStore(t);
        const { keyValues } = await client();
        await writeBytes('key', bytes);
        assert.equal(await keyValues.replace('key', (await keyValues.read('key')) ?? '', 'text', 50), true);
        await until(5_000, 'it expires', async () => (await keyValues.read('key')) === undefined);
      });

      test(`${name} is not replaced if another text is expected`, async (t) => {
        const { client, writeBytes } = await createStore(t);
        const { keyValues } = await client();
        await writeBytes('key', bytes);
        const text = (await keyValues.read('key')) ?? '';
        assert.equal(await keyValues.replace('key', `${text}\uFFFD`, 'text'), false);
        assert.equal(await keyValues.replace('another key', text, 'text'), false);
        assert.equal(await keyValues.read('key'), text);
      });
    }

    test('an expected lone surrogate matches stored bytes that are read as U+FFFD', async (t) => {
      const { client, writeBytes } = await createStore(t);
      const { keyValues } = await client();
      await writeBytes('key', Buffer.from([0x61, 0xff]));
      assert.equal(await keyValues.replace('key', 'a\uD834', 'text'), true);
    });
  });
}
