/** A seal is what openssl and a strict bank say it is. */

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type HeaderFields, headerValue } from '../../../src/pis/headers.ts';
import { checkSignature } from '../../../src/simulated-bank/signature.ts';
import { createRequestSigner } from '../../../src/upstream/request-signer.ts';
import { lifeOfAllTests } from '../../kit/life.ts';
import { createAuthority, type IssuedCertificate, openssl } from '../../kit/openssl.ts';
import { seeded } from '../../kit/seeded.ts';

const authority = createAuthority(lifeOfAllTests(), 'D-TRUST CA 2-1');
const stranger = createAuthority(lifeOfAllTests(), 'D-TRUST CA 2-1');
const rsa = authority.issue('rsa', { key: 'rsa' });
const ec = authority.issue('ec');

const algorithms = [
  ['rsa-sha256', rsa, 'SHA-256'],
  ['rsa-sha512', rsa, 'SHA-512'],
  ['ecdsa-sha256', ec, 'SHA-256'],
] as const;

const sealOf = (
  { certFile, keyFile, cert, key }: IssuedCertificate,
  algorithm: (typeof algorithms)[number][0] = 'rsa-sha256',
) =>
  createRequestSigner({ certFile, keyFile, algorithm }, (file) =>
    Buffer.from(file === certFile ? cert : key),
  );

const body = Buffer.from('{"amount":"1.00"}');
const complete: HeaderFields = [
  ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'],
  ['Content-Type', 'application/json'],
  ['PSU-ID', 'J\u00f6rg of the tests'],
  ['PSU-Corporate-ID', 'corp-1'],
  ['psu-ip-address', '192.0.2.1'],
  ['Date', 'Sun, 06 Aug 2017 15:02:37 GMT'],
  ['TPP-Redirect-URI', 'https://tpp.example/back'],
  ['TPP-Nok-Redirect-URI', 'https://tpp.example/nok'],
];

/** The value with another character in the middle, where Base64 has no spare bits. */
const changedIn = (value: string): string => {
  const at = value.length - 12;
  return value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
};

/** One parameter of the Signature field. */
const parameter = (headers: HeaderFields, name: string): string =>
  new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(headerValue(headers, 'signature') ?? '')?.[1] ?? '';

describe('a sealed request', () => {
  for (const [algorithm, issued, digest] of algorithms) {
    test(`is found good by openssl: ${algorithm}`, async () => {
      const headers = await sealOf(issued, algorithm).sign({ headers: complete, body });
      const files = ['signed', 'signature', 'public'].map((name) =>
        join(authority.folder, `${algorithm}.${name}`),
      );
      const [signed = '', signature = '', publicKey = ''] = files;
      const names = 'digest x-request-id psu-id psu-corporate-id date tpp-redirect-uri';
      assert.equal(parameter(headers, 'headers'), names);
      const lines = names.split(' ').map((name) => `${name}: ${headerValue(headers, name)}`);
      writeFileSync(signed, Buffer.from(lines.join('\n'), 'latin1'));
      writeFileSync(signature, Buffer.from(parameter(headers, 'signature'), 'base64'));
      writeFileSync(publicKey, openssl('x509', '-in', issued.certFile, '-noout', '-pubkey'));
      const hash = digest.replace('-', '').toLowerCase();
      const verdict = openssl('dgst', `-${hash}`, '-verify', publicKey, '-signature', signature, signed);
      assert.equal(verdict.trim(), 'Verified OK');

      writeFileSync(signed, body);
      const base64 = Buffer.from(
        openssl('dgst', `-${hash}`, '-r', signed).slice(0, hash === 'sha256' ? 64 : 128),
        'hex',
      );
      assert.equal(headerValue(headers, 'digest'), `${digest}=${base64.toString('base64')}`);
    });

    test(`is found good by a strict bank, and by none if anything signed has changed: ${algorithm}`, async () => {
      const headers = await sealOf(issued, algorithm).sign({ headers: complete, body });
      checkSignature(authority.cert, headers, body);
      for (const name of ['digest', 'x-request-id', 'psu-id', 'date', 'tpp-redirect-uri', 'signature']) {
        const changed = headers.map(
          ([field, value]) => [field, field.toLowerCase() === name ? changedIn(value) : value] as const,
        );
        assert.throws(() => checkSignature(authority.cert, changed, body), { status: 401 }, name);
      }
      assert.throws(() => checkSignature(authority.cert, headers, Buffer.from(`${body} `)), { status: 401 });
    });
  }

  test('names the certificate by serial number and issuer, and carries it', async () => {
    const headers = await sealOf(rsa).sign({ headers: complete, body });
    const { serialNumber } = new X509Certificate(rsa.cert);
    assert.equal(
      parameter(headers, 'keyId'),
      `SN=${serialNumber},CA=CN=D-TRUST%20CA%202-1,O=Trust%20Services%2C%20Ltd.,C=DE`,
    );
    const carried = Buffer.from(headerValue(headers, 'tpp-signature-certificate') ?? '', 'base64');
    assert.deepEqual(carried, new X509Certificate(rsa.cert).raw);
    assert.match(headerValue(headers, 'signature') ?? '', /^keyId="/);
  });

  test('with no body has the digest of nothing', async () => {
    const headers = await sealOf(rsa).sign({ headers: complete, body: Buffer.alloc(0) });
    assert.equal(headerValue(headers, 'digest'), 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=');
  });

  test('has only those fields signed that are there', async () => {
    const headers = await sealOf(rsa).sign({ headers: complete.slice(0, 2), body });
    assert.equal(parameter(headers, 'headers'), 'digest x-request-id');
    checkSignature(authority.cert, headers, body);
  });

  test('keeps every other field as it was, in its place', async () => {
    const headers = await sealOf(rsa).sign({ headers: complete, body });
    assert.deepEqual(headers.slice(0, complete.length), complete);
    assert.deepEqual(
      headers.slice(complete.length).map(([name]) => name),
      ['Digest', 'Signature', 'TPP-Signature-Certificate'],
    );
  });

  test('of a TPP is left alone, whatever else it carries', async () => {
    const signed = [...complete, ['sigNature', 'keyId="a"'], ['Digest', 'SHA-256=x']] as const;
    assert.equal(await sealOf(rsa).sign({ headers: signed, body }), signed);
  });

  test('has one digest, ours, over the bytes that are sent', async () => {
    const headers = await sealOf(rsa).sign({ headers: [...complete, ['digest', 'SHA-256=wrong']], body });
    const digests = headers.filter(([name]) => name.toLowerCase() === 'digest').map(([, value]) => value);
    assert.deepEqual(digests, [`SHA-256=${createHash('sha256').update(body).digest('base64')}`]);
  });

  test('is found good by a strict bank, whatever the bytes and the values are', async (t) => {
    const { sign } = sealOf(ec, 'ecdsa-sha256');
    const value = fc.string({
      unit: fc
        .integer({ min: 0x21, max: 0xff })
        .filter((code) => code < 0x7f || code > 0xa0)
        .map((code) => String.fromCharCode(code)),
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 500 }), value, async (bytes, psuId) => {
        const headers = await sign({
          headers: [...complete.slice(0, 2), ['PSU-ID', psuId]],
          body: Buffer.from(bytes),
        });
        checkSignature(authority.cert, headers, Buffer.from(bytes));
      }),
      seeded(t, 200),
    );
  });
});

describe('a strict bank', () => {
  const refused = (headers: HeaderFields, code: string, ca = authority.cert) =>
    assert.throws(() => checkSignature(ca, headers, body), { code });

  test('refuses what is not signed', () => refused(complete, 'SIGNATURE_MISSING'));

  test('refuses a seal of another authority, one that has expired, and one that is none', async () => {
    const headers = await sealOf(rsa).sign({ headers: complete, body });
    refused(headers, 'CERTIFICATE_INVALID', stranger.cert);
    const withSeal = (value: string) =>
      headers.map(([name, old]) => [name, name === 'TPP-Signature-Certificate' ? value : old] as const);
    const expired = authority.issue('expired', { from: '20250101000000Z', until: '20260101000000Z' });
    refused(withSeal(new X509Certificate(expired.cert).raw.toString('base64')), 'CERTIFICATE_INVALID');
    refused(withSeal('none'), 'FORMAT_ERROR');
    refused(withSeal(new X509Certificate(ec.cert).raw.toString('base64')), 'SIGNATURE_INVALID');
  });
});
