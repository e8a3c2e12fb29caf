import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { EncryptionKeys } from '../../../src/config/encryption-keys.ts';
import { encryptKeyValues, readEncryptionKeys } from '../../../src/state/encryption.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { withFile } from '../../kit/folder.ts';

const keyFrom = (name: string) => createHash('sha256').update(name).digest();
const [first, second, third] = [keyFrom('first'), keyFrom('second'), keyFrom('third')];

type Store = ReturnType<typeof createStore>;

/** An empty store: as stored, and decrypted with some keys. */
function createStore() {
  const state = createFailingState(createMemoryState());
  const under = (...keys: EncryptionKeys) => encryptKeyValues(state.keyValues, keys);
  return { state, stored: state.keyValues, under };
}

describe('an encrypted value', () => {
  test('contains neither the text nor the key', async () => {
    const { stored, under } = createStore();
    const text = '{"debtorAccount":{"iban":"DE40100100103307118608"}}';
    await under(first).write('name', text);
    const encrypted = (await stored.read('name')) ?? assert.fail();
    assert.match(encrypted, /^sealed:1:[\w-]+$/);
    const bytes = Buffer.from(encrypted.slice('sealed:1:'.length), 'base64url');
    for (const part of [text, 'iban', 'DE40', first])
      assert.ok(!bytes.includes(part) && !encrypted.includes(`${part}`));
  });

  test('is equal for equal texts under the same name, and differs under another name', async () => {
    const { stored, under } = createStore();
    const names = ['a', 'b', '', 'a1', '1:a'];
    for (const name of names) await under(first).write(name, 'text');
    const encrypted = await Promise.all(names.map((name) => stored.read(name)));
    await under(first).write('a', 'text');
    assert.equal(await stored.read('a'), encrypted[0]);
    assert.equal(new Set(encrypted).size, names.length);
    assert.equal(new Set(encrypted.map((text) => text?.slice(0, 9 + 16))).size, names.length, 'nonces');
  });

  test('has another nonce if characters move from the text to the name', async () => {
    const { stored, under } = createStore();
    await under(first).write('ab', 'c');
    await under(first).write('a', 'bc');
    const nonces = await Promise.all(
      ['ab', 'a'].map(async (name) => (await stored.read(name))?.slice(0, 9 + 16)),
    );
    assert.notEqual(nonces[0], nonces[1]);
  });

  test('that an earlier version stored can be read', async () => {
    const { stored, under } = createStore();
    await stored.write('name', 'sealed:1:UmYeOU8oX_qFmW4sc0UPQEQuTzh2bY8wDSh1_hJOzj0dmgdcg6R_');
    assert.equal(await under(first).read('name'), 'a text: €');
  });

  test('cannot be decrypted if any byte is changed', async () => {
    const { stored, under } = createStore();
    await under(first).write('name', 'text');
    const encrypted = (await stored.read('name')) ?? '';
    const length = Buffer.from(encrypted.slice(9), 'base64url').length;
    for (let index = 0; index < length; index++) {
      await stored.write('name', withBitChanged(encrypted, index));
      assert.notEqual(await under(first).read('name'), 'text', `byte ${index}`);
    }
  });

  const undecryptable: Readonly<Record<string, (store: Store) => Promise<void>>> = {
    'encrypted with a lost key': ({ under }) => under(third).write('name', 'text'),
    async 'with one changed bit'({ stored, under }) {
      await under(first).write('name', 'text');
      await stored.write('name', withBitChanged((await stored.read('name')) ?? '', 20));
    },
    async 'moved from another name'({ stored, under }) {
      await under(first).write('other', 'text');
      await stored.write('name', (await stored.read('other')) ?? '');
    },
    truncated: ({ stored }) => stored.write('name', 'sealed:1:AAAA'),
    'of a later format': ({ stored }) => stored.write('name', 'sealed:2:AAAA'),
  };
  for (const [what, write] of Object.entries(undecryptable)) {
    test(`${what} is read as stored, and can be replaced`, async () => {
      const store = createStore();
      await write(store);
      const values = store.under(first, second);
      const raw = (await store.stored.read('name')) ?? assert.fail();
      assert.equal(await values.read('name'), raw);
      assert.equal(await values.replace('name', 'text', 'new'), false);
      assert.equal(await values.replace('name', raw, 'new'), true);
      assert.equal(await values.read('name'), 'new');
    });
  }
});

describe('a value from before a change of the encryption keys', () => {
  const earlier: Readonly<Record<string, (store: Store) => Promise<void>>> = {
    'stored without encryption': ({ stored }) => stored.write('name', 'old'),
    'encrypted with the previous key': ({ under }) => under(second).write('name', 'old'),
    'encrypted with the key before that': ({ under }) => under(third).write('name', 'old'),
  };
  for (const [what, write] of Object.entries(earlier)) {
    test(`${what} can be read and replaced; the new value is encrypted with the current key`, async () => {
      const store = createStore();
      await write(store);
      const values = store.under(first, second, third);
      assert.equal(await values.read('name'), 'old');
      assert.equal(await values.replace('name', 'other', 'new'), false);
      assert.equal(await values.writeIfAbsent('name', 'new'), false);
      assert.equal(await values.replace('name', 'old', 'new'), true);
      assert.equal(await store.under(first).read('name'), 'new');
    });

    test(`${what} is removed by removeIf only if the expected text is its own`, async () => {
      const store = createStore();
      await write(store);
      const values = store.under(first, second, third);
      assert.equal(await values.removeIf('name', 'other'), false);
      assert.equal(await values.removeIf('name', 'old'), true);
      assert.equal(await store.stored.read('name'), undefined);
    });
  }

  test('is replaced if the expected text contains a lone surrogate, as without encryption', async () => {
    const { stored, under } = createStore();
    await stored.write('name', 'a\uD834');
    assert.equal(await under(first).replace('name', 'a\uD834', 'new'), true);
  });

  test('is read as it is although it starts like an encrypted value', async () => {
    const { under } = createStore();
    await under(first).write('name', 'sealed:1:text');
    assert.equal(await under(first).read('name'), 'sealed:1:text');
    assert.equal(await under(first).replace('name', 'sealed:1:text', 'new'), true);
  });
});

describe('replacing an encrypted value', () => {
  test('takes one operation of the store if the value is encrypted with the current key', async () => {
    const { state, under } = createStore();
    const values = under(first);
    await values.write('name', 'old');
    const before = state.operations.length;
    assert.equal(await values.replace('name', 'old', 'new'), true);
    assert.equal(state.operations.length, before + 1);
  });

  test('succeeds although another instance encrypts the same text with another key at the same time', async () => {
    const { stored, under } = createStore();
    await under(second).write('name', 'text');
    const racing = encryptKeyValues(
      {
        ...stored,
        async read(name) {
          const value = await stored.read(name);
          await under(first, second).write(name, 'text');
          return value;
        },
      },
      [first, second],
    );
    assert.equal(await racing.replace('name', 'text', 'new'), true);
    assert.equal(await under(first).read('name'), 'new');
  });
});

describe('the encryption key file', () => {
  const keyBytes = Buffer.alloc(32, 0xa7);
  const base64 = keyBytes.toString('base64');
  const hex = Buffer.alloc(32, 0x5c).toString('hex');
  const keysIn = (content: string) => withFile(content, readEncryptionKeys);
  const errorFor = (content: string) => {
    try {
      keysIn(content);
    } catch (thrown) {
      return String(thrown).replace(/ \/\S+penstock\.yaml/, ' FILE');
    }
    return assert.fail('the file was accepted');
  };

  test('contains one key per line, the current one first, in base64 or hex', () => {
    const keys = keysIn(`\uFEFF# since May\r\n${base64}\r\n\r\n  # the old one\n\t${hex.toUpperCase()} \n\n`);
    assert.deepEqual(keys, [keyBytes, Buffer.from(hex, 'hex')]);
    assert.deepEqual(keysIn(base64), [keyBytes]);
  });

  for (const [what, content, error] of [
    ['is empty', '', /FILE: contains no key; write one key per line/],
    ['contains only comments', '# a\n\n#b\n', /FILE: contains no key; write one key per line/],
    [
      'contains a key that is too short',
      `${hex}\n${hex.slice(2)}\n`,
      /FILE: line 2 is not a key; write one key per line/,
    ],
    ['contains a key that is too long', `\n${base64}A`, /FILE: line 2 is not a key/],
    ['contains a passphrase', 'correct horse battery staple', /FILE: line 1 is not a key/],
    ['contains two keys in one line', `${hex} ${hex}`, /FILE: line 1 is not a key/],
    [
      'contains a key twice',
      `${hex}\n\n${keyBytes.toString('hex')}\n${base64}`,
      /FILE: line 4 repeats an earlier key; remove one of them/,
    ],
  ] as const) {
    test(`is refused if it ${what}, with an error that quotes nothing of it`, () => {
      const message = errorFor(content);
      assert.match(message, error);
      assert.match(message, /^Error: state\.encryptionKeyFile: /);
      for (const line of content.split(/\s/).filter((part) => part.length > 8))
        assert.ok(!message.includes(line));
    });
  }

  test('is refused if it cannot be read', () => {
    assert.throws(
      () => readEncryptionKeys('/nowhere/keys'),
      /^Error: state\.encryptionKeyFile: \/nowhere\/keys: ENOENT/,
    );
    assert.throws(() => readEncryptionKeys('/'), /EISDIR/);
  });
});

function withBitChanged(encrypted: string, index: number): string {
  const bytes = Buffer.from(encrypted.slice(9), 'base64url');
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  return `sealed:1:${bytes.toString('base64url')}`;
}
