import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { fingerprint, host, isLoopback, secretHash, webAddress } from '../../../src/config/values.ts';

describe('web addresses', () => {
  test('lose the slash at their end, and nothing else', () => {
    assert.equal(webAddress().parse('https://api.bank.example/psd2/'), 'https://api.bank.example/psd2');
    assert.equal(webAddress().parse('https://api.bank.example:8443'), 'https://api.bank.example:8443');
  });

  test('with anything but scheme, host and a plain path are refused', () => {
    const refused = {
      'api.bank.example': /^expected an address such as/,
      'ftp://bank.example': /begins with https/,
      'https://user:pass@bank.example': /must not hold credentials/,
      'https://user@bank.example': /must not hold credentials/,
      'https://bank.example/?': /must not have a query/,
      'https://bank.example/?a=b': /must not have a query/,
      'https://bank.example/#': /must not have a fragment/,
      'https://bank.example//psd2': /path of an address/,
      'https://bank.example/a%2Fb': /path of an address/,
    };
    for (const [text, message] of Object.entries(refused))
      assert.match(webAddress().safeParse(text).error?.issues[0]?.message ?? '', message, text);
  });

  test('never make the parser throw', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.webUrl()), (text) => void webAddress().safeParse(text)));
  });
});

describe('loopback', () => {
  test('is recognised in all its forms', () => {
    for (const name of ['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost', 'LOCALHOST', 'bank.localhost'])
      assert.ok(isLoopback(name), name);
  });

  test('is not mistaken for what only looks like it', () => {
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

  test('are compared in lower case without colons, as openssl prints them or not', () => {
    const printed = (hash.match(/../g) ?? []).join(':').toUpperCase();
    assert.equal(fingerprint().parse(printed), hash);
    assert.equal(secretHash().parse(hash.toUpperCase()), hash);
  });

  test('of nothing are refused: a secret that was never set would let everybody in', () => {
    for (const nothing of ['', '\n']) {
      const text = createHash('sha256').update(nothing).digest('hex');
      assert.match(secretHash().safeParse(text).error?.issues[0]?.message ?? '', /empty secret/);
    }
  });

  test('that are secrets in the clear are refused without quoting them', () => {
    const message = secretHash().safeParse('hunter2').error?.issues[0]?.message ?? '';
    assert.match(message, /^expected the SHA-256/);
    assert.doesNotMatch(message, /hunter2/);
  });
});

test('hosts are addresses or names, never addresses with a port or a scheme', () => {
  for (const text of ['127.0.0.1', '::', '::1', 'gateway.internal'])
    assert.ok(host('::').safeParse(text).success, text);
  for (const text of ['', 'a b', 'http://a', '127.0.0.1:80', '[::1]', '-a'])
    assert.ok(!host('::').safeParse(text).success, text);
});
