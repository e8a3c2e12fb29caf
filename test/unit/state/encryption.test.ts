/** What stands in the state when values are encrypted, and what can still be read of it. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { type EncryptionKeys, encryptKeyValues, readEncryptionKeys } from '../../../src/state/encryption.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { withFile } from '../../kit/folder.ts';

const keyOf = (name: string) => createHash('sha256').update(name).digest();
const [first, second, third] = [keyOf('first'), keyOf('second'), keyOf('third')];

/** An empty store, and a way to it under some keys. */
function createStore() {
  const state = createFailingState(createMemoryState());
  const under = (...keys: EncryptionKeys) => encryptKeyValues(state.keyValues, keys);
  return { state, stored: state.keyValues, under };
}

describe('what stands in the state', () => {
  test('shows neither the text nor the key, not even decoded', async () => {
    const { stored, under } = createStore();
    const text = '{"debtorAccount":{"iban":"DE40100100103307118608"}}';
    await under(first).write('name', text);
    const sealed = (await stored.read('name')) ?? assert.fail();
    assert.match(sealed, /^sealed:1:[\w-]+$/);
    const bytes = Buffer.from(sealed.slice('sealed:1:'.length), 'base64url');
    for (const part of [text, 'iban', 'DE40', first])
      assert.ok(!bytes.includes(part) && !sealed.includes(`${part}`));
  });

  test('is the same for equal texts under one name, so that it can be compared, and differs under others', async () => {
    const { stored, under } = createStore();
    const names = ['a', 'b', '', 'a1', '1:a'];
    for (const name of names) await under(first).write(name, 'text');
    const sealed = await Promise.all(names.map((name) => stored.read(name)));
    await under(first).write('a', 'text');
    assert.equal(await stored.read('a'), sealed[0]);
    assert.equal(new Set(sealed).size, names.length);
    assert.equal(new Set(sealed.map((text) => text?.slice(0, 9 + 16))).size, names.length, 'nonces');
  });

  test('differs where the name ends elsewhere', async () => {
    const { stored, under } = createStore();
    await under(first).write('ab', 'c');
    await under(first).write('a', 'bc');
    const nonces = await Promise.all(
      ['ab', 'a'].map(async (name) => (await stored.read(name))?.slice(0, 9 + 16)),
    );
    assert.notEqual(nonces[0], nonces[1]);
  });

  test('keeps its form: what was stored once is read by every later version', async () => {
    const { stored, under } = createStore();
    await stored.write('name', 'sealed:1:UmYeOU8oX_qFmW4sc0UPQEQuTzh2bY8wDSh1_hJOzj0dmgdcg6R_');
    assert.equal(await under(first).read('name'), 'a text: €');
  });
});

describe('what cannot be opened', () => {
  const spoilt = {
    'under a key that is lost': async ({ under }: ReturnType<typeof createStore>) =>
      under(third).write('name', 'text'),
    async 'changed by one bit'({ stored, under }: ReturnType<typeof createStore>) {
      await under(first).write('name', 'text');
      await stored.write('name', withBitChanged((await stored.read('name')) ?? '', 20));
    },
    async 'moved here from another name'({ stored, under }: ReturnType<typeof createStore>) {
      await under(first).write('other', 'text');
      await stored.write('name', (await stored.read('other')) ?? '');
    },
    'cut off': async ({ stored }: ReturnType<typeof createStore>) => stored.write('name', 'sealed:1:AAAA'),
    'of a later form': async ({ stored }: ReturnType<typeof createStore>) =>
      stored.write('name', 'sealed:2:AAAA'),
  };
  for (const [how, spoil] of Object.entries(spoilt)) {
    test(`(${how}) is read as it stands, and can be replaced`, async () => {
      const store = createStore();
      await spoil(store);
      const values = store.under(first, second);
      const raw = (await store.stored.read('name')) ?? assert.fail();
      assert.equal(await values.read('name'), raw);
      assert.equal(await values.replace('name', 'text', 'new'), false);
      assert.equal(await values.replace('name', raw, 'new'), true);
      assert.equal(await values.read('name'), 'new');
    });
  }

  test('is every text of which any byte was changed', async () => {
    const { stored, under } = createStore();
    await under(first).write('name', 'text');
    const sealed = (await stored.read('name')) ?? '';
    const bytes = Buffer.from(sealed.slice(9), 'base64url').length;
    for (let index = 0; index < bytes; index++) {
      await stored.write('name', withBitChanged(sealed, index));
      assert.notEqual(await under(first).read('name'), 'text', `byte ${index}`);
    }
  });
});

describe('a value from before', () => {
  const before = {
    'encryption was switched on': ({ stored }: ReturnType<typeof createStore>) => stored.write('name', 'old'),
    'the key was changed': ({ under }: ReturnType<typeof createStore>) => under(second).write('name', 'old'),
    'the key was changed twice': ({ under }: ReturnType<typeof createStore>) =>
      under(third).write('name', 'old'),
  };
  for (const [when, write] of Object.entries(before)) {
    test(`${when} is read and replaced, and then stands under the current key`, async () => {
      const store = createStore();
      await write(store);
      const values = store.under(first, second, third);
      assert.equal(await values.read('name'), 'old');
      assert.equal(await values.replace('name', 'other', 'new'), false);
      assert.equal(await values.writeIfAbsent('name', 'new'), false);
      assert.equal(await values.replace('name', 'old', 'new'), true);
      assert.equal(await store.under(first).read('name'), 'new');
    });
  }

  test('is replaced by whoever wrote half of a character, as it could be unencrypted', async () => {
    const { stored, under } = createStore();
    await stored.write('name', 'a\uD834');
    assert.equal(await under(first).replace('name', 'a\uD834', 'new'), true);
  });

  test('that looks sealed, and was not, is read as it is', async () => {
    const { under } = createStore();
    await under(first).write('name', 'sealed:1:text');
    assert.equal(await under(first).read('name'), 'sealed:1:text');
    assert.equal(await under(first).replace('name', 'sealed:1:text', 'new'), true);
  });
});

describe('a replacement', () => {
  test('that succeeds is one operation', async () => {
    const { state, under } = createStore();
    const values = under(first);
    await values.write('name', 'old');
    const before = state.operations.length;
    assert.equal(await values.replace('name', 'old', 'new'), true);
    assert.deepEqual(state.operations.slice(before), ['replace name']);
  });

  test('succeeds although somebody seals the same text anew meanwhile', async () => {
    const { stored, under } = createStore();
    await under(second).write('name', 'text');
    const slow = encryptKeyValues(
      {
        ...stored,
        async read(name) {
          const read = await stored.read(name);
          await under(first, second).write(name, 'text');
          return read;
        },
      },
      [first, second],
    );
    assert.equal(await slow.replace('name', 'text', 'new'), true);
    assert.equal(await under(first).read('name'), 'new');
  });
});

function withBitChanged(sealed: string, index: number): string {
  const bytes = Buffer.from(sealed.slice(9), 'base64url');
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  return `sealed:1:${bytes.toString('base64url')}`;
}

// MERGED HEADER (rewrite or remove):
/* The file with the keys: what may stand in it, and what is said of one that cannot be used. */

const bytes = Buffer.alloc(32, 0xa7);
const base64 = bytes.toString('base64');
const hex = Buffer.alloc(32, 0x5c).toString('hex');

const keysIn = (content: string) => withFile(content, readEncryptionKeys);
const faultIn = (content: string) => {
  try {
    keysIn(content);
  } catch (thrown) {
    return String(thrown).replace(/ \/\S+penstock\.yaml/, ' FILE');
  }
  return assert.fail('it was taken');
};

describe('the file with the keys', () => {
  test('holds one key a line, the current one first, in base64 or hex', () => {
    const keys = keysIn(`\uFEFF# since May\r\n${base64}\r\n\r\n  # the old one\n\t${hex.toUpperCase()} \n\n`);
    assert.deepEqual(keys, [bytes, Buffer.from(hex, 'hex')]);
    assert.deepEqual(keysIn(base64), [bytes]);
  });

  for (const [what, content, fault] of [
    ['is empty', '', /FILE holds no key; write one key a line/],
    ['holds comments alone', '# a\n\n#b\n', /FILE holds no key; write one key a line/],
    [
      'holds a key that is too short',
      `${hex}\n${hex.slice(2)}\n`,
      /line 2 of FILE is no key; write one key a line/,
    ],
    ['holds a key that is too long', `\n${base64}A`, /line 2 of FILE is no key/],
    ['holds a pass phrase', 'correct horse battery staple', /line 1 of FILE is no key/],
    ['holds two keys in a line', `${hex} ${hex}`, /line 1 of FILE is no key/],
    [
      'holds a key twice',
      `${hex}\n\n${bytes.toString('hex')}\n${base64}`,
      /in line 4 of FILE stands there twice; remove one/,
    ],
  ] as const) {
    test(`is refused if it ${what}, in words that quote nothing of it`, () => {
      const said = faultIn(content);
      assert.match(said, fault);
      assert.match(said, /^Error: state\.encryptionKeyFile: /);
      for (const line of content.split(/\s/).filter((part) => part.length > 8))
        assert.ok(!said.includes(line));
    });
  }

  test('is refused if it cannot be read', () => {
    assert.throws(
      () => readEncryptionKeys('/nowhere/keys'),
      /^Error: state\.encryptionKeyFile: the file cannot be read \(.*\/nowhere\/keys.*\); name a file that can$/,
    );
    assert.throws(() => readEncryptionKeys('/'), /cannot be read/);
  });
});
