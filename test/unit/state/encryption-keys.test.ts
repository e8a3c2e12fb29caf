/** The file with the keys: what may stand in it, and what is said of one that cannot be used. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readEncryptionKeys } from '../../../src/state/encryption-keys.ts';
import { withFile } from '../../kit/folder.ts';

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
