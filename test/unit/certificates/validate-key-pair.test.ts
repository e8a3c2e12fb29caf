import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { validateSigningKeyPair } from '../../../src/certificates/signature-algorithms.ts';
import { validateKeyPair, validateTls } from '../../../src/certificates/validate-key-pair.ts';
import { createAuthority, inDays, openssl } from '../../kit/openssl.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const authority = createAuthority(scopeOfAllTests());
const [own, other] = [authority.issue('own'), authority.issue('other')];
const rsa = authority.issue('rsa', { key: 'rsa' });
const expired = authority.issue('expired', { from: inDays(-10), until: '20261001120000Z' });
const early = authority.issue('early', { from: '21260101000000Z', until: '21270101000000Z' });

const pair = (cert: string, key: string) => ({ cert: Buffer.from(cert), key: Buffer.from(key) });
const errorsOf = (cert: string, key: string) =>
  validateKeyPair(pair(cert, key), Date.now()).map(({ file, message }) => `${file} ${message}`);

describe('validation of a certificate and its key', () => {
  test('accepts a matching pair, with or without the rest of the chain', () => {
    assert.deepEqual(errorsOf(own.cert, own.key), []);
    assert.deepEqual(errorsOf(own.cert + authority.cert, own.key), []);
    assert.deepEqual(errorsOf(rsa.cert, rsa.key), []);
  });

  test('refuses the key of another certificate, whatever the key type', () => {
    assert.deepEqual(errorsOf(own.cert, other.key), ['key does not match the certificate']);
    assert.deepEqual(errorsOf(own.cert, rsa.key), ['key does not match the certificate']);
  });

  test('refuses a certificate that has expired or is not valid yet', () => {
    const [late] = errorsOf(expired.cert, expired.key);
    assert.equal(late, 'cert contains a certificate that expired on 2026-10-01T12:00:00.000Z');
    const [soon] = errorsOf(early.cert, early.key);
    assert.equal(soon, 'cert contains a certificate that is not valid before 2126-01-01T00:00:00.000Z');
  });

  test('reports all errors at once', () => {
    assert.equal(errorsOf(expired.cert, own.key).length, 2);
    assert.deepEqual(errorsOf('', ''), [
      'cert contains no certificate in PEM format',
      'key contains no private key in PEM format without a passphrase',
    ]);
  });

  test('refuses swapped files and truncated files', () => {
    assert.equal(errorsOf(own.key, own.cert).length, 2);
    assert.equal(errorsOf(own.cert.slice(0, -40), own.key).length, 1);
    assert.equal(errorsOf(own.cert, own.key.slice(0, -40)).length, 1);
  });

  test('refuses a key with a passphrase', () => {
    const file = join(authority.folder, 'locked.key');
    writeFileSync(file, '');
    openssl('pkcs8', '-topk8', '-in', own.keyFile, '-out', file, '-passout', 'pass:secret');
    assert.deepEqual(errorsOf(own.cert, readFileSync(file, 'utf8')), [
      'key contains no private key in PEM format without a passphrase',
    ]);
  });

  test('refuses a truncated chain for TLS', () => {
    const cut = own.cert + authority.cert.slice(0, 200);
    assert.deepEqual(
      validateTls({ pair: pair(cut, own.key) }, Date.now()).map(({ file }) => file),
      ['cert'],
    );
  });

  test('refuses a CA file without a certificate', () => {
    assert.deepEqual(validateTls({ ca: Buffer.from(authority.cert) }, Date.now()), []);
    const [error] = validateTls({ pair: pair(own.cert, own.key), ca: Buffer.from('nothing') }, Date.now());
    assert.equal(error?.file, 'ca');
  });

  test('refuses a CA file in which any certificate is damaged', () => {
    const second = createAuthority(scopeOfAllTests(), 'second').cert;
    const filesOf = (ca: string) =>
      validateTls({ ca: Buffer.from(ca) }, Date.now()).map((error) => error.file);
    assert.deepEqual(filesOf(`# two\n${authority.cert}${second.replaceAll('\n', '\r\n')}# end\n`), []);
    assert.deepEqual(filesOf(authority.cert + second.slice(0, 200)), ['ca']);
    assert.deepEqual(filesOf(authority.cert.replace('MII', '!!!') + second), ['ca']);
  });

  test('refuses a signature algorithm that does not fit the type of the key', () => {
    const messagesOf = (cert: string, key: string, algorithm: 'rsa-sha512' | 'ecdsa-sha256') =>
      validateSigningKeyPair(pair(cert, key), algorithm, Date.now()).map(({ message }) => message);
    assert.deepEqual(messagesOf(rsa.cert, rsa.key, 'rsa-sha512'), []);
    assert.deepEqual(messagesOf(own.cert, own.key, 'ecdsa-sha256'), []);
    assert.deepEqual(messagesOf(rsa.cert, rsa.key, 'ecdsa-sha256'), ['contains no key for ecdsa-sha256']);
    assert.deepEqual(messagesOf(own.cert, own.key, 'rsa-sha512'), ['contains no key for rsa-sha512']);
  });
});
