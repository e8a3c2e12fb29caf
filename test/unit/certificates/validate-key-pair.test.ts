/** A certificate is used only with its own key, and only while it is valid. */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { signingKeyErrors } from '../../../src/certificates/signature-algorithms.ts';
import { keyPairErrors, tlsErrors } from '../../../src/certificates/validate-key-pair.ts';
import { lifeOfAllTests } from '../../kit/life.ts';
import { createAuthority, inDays, openssl } from '../../kit/openssl.ts';

const authority = createAuthority(lifeOfAllTests());
const [own, other] = [authority.issue('own'), authority.issue('other')];
const rsa = authority.issue('rsa', { key: 'rsa' });
const expired = authority.issue('expired', { from: inDays(-10), until: '20261001120000Z' });
const early = authority.issue('early', { from: '21260101000000Z', until: '21270101000000Z' });

const pair = (cert: string, key: string) => ({ cert: Buffer.from(cert), key: Buffer.from(key) });
const faults = (cert: string, key: string) =>
  keyPairErrors(pair(cert, key), Date.now()).map(({ file, message }) => `${file} ${message}`);

describe('a certificate and its key', () => {
  test('are fine together, a chain behind the certificate included', () => {
    assert.deepEqual(faults(own.cert, own.key), []);
    assert.deepEqual(faults(own.cert + authority.cert, own.key), []);
    assert.deepEqual(faults(rsa.cert, rsa.key), []);
  });

  test('are refused if they belong to different pairs, whatever the kind of key', () => {
    assert.deepEqual(faults(own.cert, other.key), ['key holds the key of another certificate']);
    assert.deepEqual(faults(own.cert, rsa.key), ['key holds the key of another certificate']);
  });

  test('are refused after the last day, and before the first', () => {
    const [late] = faults(expired.cert, expired.key);
    assert.equal(late, 'cert holds a certificate that has expired on 2026-10-01T12:00:00.000Z');
    const [soon] = faults(early.cert, early.key);
    assert.equal(soon, 'cert holds a certificate that is not valid before 2126-01-01T00:00:00.000Z');
  });

  test('have all their faults told', () => {
    assert.equal(faults(expired.cert, own.key).length, 2);
    assert.deepEqual(faults('', ''), [
      'cert holds no certificate as PEM',
      'key holds no private key as PEM without a passphrase',
    ]);
  });

  test('are refused if they stand in each other’s file, or are cut off', () => {
    assert.equal(faults(own.key, own.cert).length, 2);
    assert.equal(faults(own.cert.slice(0, -40), own.key).length, 1);
    assert.equal(faults(own.cert, own.key.slice(0, -40)).length, 1);
  });

  test('are refused if the key needs a passphrase: nobody is there to type it', () => {
    const file = join(authority.folder, 'locked.key');
    writeFileSync(file, '');
    openssl('pkcs8', '-topk8', '-in', own.keyFile, '-out', file, '-passout', 'pass:secret');
    assert.deepEqual(faults(own.cert, readFileSync(file, 'utf8')), [
      'key holds no private key as PEM without a passphrase',
    ]);
  });

  test('are refused for TLS if the chain behind them is cut off', () => {
    const cut = own.cert + authority.cert.slice(0, 200);
    assert.deepEqual(
      tlsErrors({ pair: pair(cut, own.key) }, Date.now()).map(({ file }) => file),
      ['cert'],
    );
  });

  test('may come with authorities, which must be some', () => {
    assert.deepEqual(tlsErrors({ ca: Buffer.from(authority.cert) }, Date.now()), []);
    const [fault] = tlsErrors({ pair: pair(own.cert, own.key), ca: Buffer.from('nothing') }, Date.now());
    assert.equal(fault?.file, 'ca');
  });

  test('may come with several authorities, of which none may be cut off: nobody would believe it', () => {
    const second = createAuthority(lifeOfAllTests(), 'second').cert;
    const lies = (ca: string) => tlsErrors({ ca: Buffer.from(ca) }, Date.now()).map((fault) => fault.file);
    assert.deepEqual(lies(`# two\n${authority.cert}${second.replaceAll('\n', '\r\n')}# end\n`), []);
    assert.deepEqual(lies(authority.cert + second.slice(0, 200)), ['ca']);
    assert.deepEqual(lies(authority.cert.replace('MII', '!!!') + second), ['ca']);
  });

  test('seal requests only by an algorithm that the key can do', () => {
    const told = (cert: string, key: string, algorithm: 'rsa-sha512' | 'ecdsa-sha256') =>
      signingKeyErrors(pair(cert, key), algorithm, Date.now()).map(({ message }) => message);
    assert.deepEqual(told(rsa.cert, rsa.key, 'rsa-sha512'), []);
    assert.deepEqual(told(own.cert, own.key, 'ecdsa-sha256'), []);
    assert.deepEqual(told(rsa.cert, rsa.key, 'ecdsa-sha256'), ['holds no key for ecdsa-sha256']);
    assert.deepEqual(told(own.cert, own.key, 'rsa-sha512'), ['holds no key for rsa-sha512']);
  });
});
