import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { certificateNames, isInDomain } from '../../../src/certificates/certificate-names.ts';
import { createAuthority } from '../../kit/openssl.ts';

describe('the domains of a certificate', () => {
  test('are its common name and its alternative names', (t) => {
    const { certFile } = createAuthority(t).issue('qwac', {
      subject: '/C=DE/O=Shop/CN=tpp.example',
      extensions: 'subjectAltName = DNS:*.tpp.example, DNS:other.example, IP:192.0.2.1',
    });
    assert.deepEqual(certificateNames(readFileSync(certFile)), [
      'tpp.example',
      '*.tpp.example',
      'other.example',
    ]);
  });

  test('contain their own name and all names below it', () => {
    for (const host of ['tpp.example', 'TPP.example.', 'www.tpp.example', 'a.b.tpp.example'])
      assert.equal(isInDomain(host, 'tpp.example'), true, host);
    for (const host of ['tpp.example.evil', 'nottpp.example', 'example', 'tpp-example', '192.0.2.1'])
      assert.equal(isInDomain(host, 'tpp.example'), false, host);
  });

  test('with a wildcard contain what is in place of it, and below', () => {
    for (const host of ['www.tpp.example', 'a.www.tpp.example'])
      assert.equal(isInDomain(host, '*.tpp.example'), true, host);
    for (const host of ['tpp.example', 'www.other.example'])
      assert.equal(isInDomain(host, '*.tpp.example'), false, host);
  });

  test('are no domains if they are names of people or products', () => {
    for (const name of ['Shop', 'example', '', '*'])
      assert.equal(isInDomain('shop.example', name), false, name);
  });
});
