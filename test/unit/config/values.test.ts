/** Schemas of values that several sections share. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fingerprint, host, isLoopback, secretHash, webAddress } from '../../../src/config/values.ts';

describe('web addresses', () => {
  test('removes the trailing slash of a web address, and nothing else', () => {
    assert.equal(webAddress().parse('https://api.bank.example/psd2/'), 'https://api.bank.example/psd2');
    assert.equal(webAddress().parse('https://api.bank.example:8443'), 'https://api.bank.example:8443');
  });

  test('refuses a web address with more than scheme, host and a plain path', () => {
    const refused = {
      'api.bank.example': /^expected a URL such as/,
      'ftp://bank.example': /begins with https/,
      'https://user:pass@bank.example': /credentials are not allowed/,
      'https://user@bank.example': /credentials are not allowed/,
      'https://bank.example/?': /a query is not allowed/,
      'https://bank.example/?a=b': /a query is not allowed/,
      'https://bank.example/#': /a fragment is not allowed/,
      'https://bank.example//psd2': /path of the URL/,
      'https://bank.example/a%2Fb': /path of the URL/,
    };
    for (const [text, message] of Object.entries(refused))
      assert.match(webAddress().safeParse(text).error?.issues[0]?.message ?? '', message, text);
  });

  test('parses or refuses any text as a web address, and never throws', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.webUrl()), (text) => void webAddress().safeParse(text)));
  });
});

describe('loopback hosts', () => {
  test('recognises loopback hosts in all forms', () => {
    for (const name of ['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost', 'LOCALHOST', 'bank.localhost'])
      assert.ok(isLoopback(name), name);
  });

  test('does not take similar hosts for loopback hosts', () => {
    for (const name of [
      '0.0.0.0',
      '::',
      '128.0.0.1',
      '127.0.0.1.bank.example',
      'localhost.bank.example',
      '10.0.0.1',
    ])
      assert.ok(!isLoopback(name), name);
  });
});

describe('hashes', () => {
  const hash = createHash('sha256').update('a secret').digest('hex');

  test('parses hashes to lower case without colons, also as openssl prints them', () => {
    const printed = (hash.match(/../g) ?? []).join(':').toUpperCase();
    assert.equal(fingerprint().parse(printed), hash);
    assert.equal(secretHash().parse(hash.toUpperCase()), hash);
  });

  test('refuses the hash of an empty secret, which would admit everybody', () => {
    for (const empty of ['', '\n']) {
      const text = createHash('sha256').update(empty).digest('hex');
      assert.match(secretHash().safeParse(text).error?.issues[0]?.message ?? '', /empty string/);
    }
  });

  test('refuses a plaintext secret in place of its hash, without quoting it', () => {
    const message = secretHash().safeParse('hunter2').error?.issues[0]?.message ?? '';
    assert.match(message, /^expected the SHA-256/);
    assert.doesNotMatch(message, /hunter2/);
  });
});

test('accepts addresses and names as hosts, without port and scheme', () => {
  for (const text of ['127.0.0.1', '::', '::1', 'gateway.internal'])
    assert.ok(host('::').safeParse(text).success, text);
  for (const text of [
    '',
    'a b',
    'http://a',
    '127.0.0.1:80',
    '[::1]',
    '-a',
    '256.1.1.1',
    '0.0000010000000000000002',
  ])
    assert.ok(!host('::').safeParse(text).success, text);
});
