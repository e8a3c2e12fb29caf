/** Signatures are verified by openssl and by the simulated bank. */

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type HeaderFields, headerValue } from '../../../src/pis/headers.ts';
import { assertSignature } from '../../../src/simulated-bank/signature.ts';
import { createRequestSigner } from '../../../src/upstream/request-signer.ts';
import { createAuthority, type IssuedCertificate, openssl } from '../../kit/openssl.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const authority = createAuthority(scopeOfAllTests(), 'D-TRUST CA 2-1');
const stranger = createAuthority(scopeOfAllTests(), 'D-TRUST CA 2-1');
const rsa = authority.issue('rsa', { key: 'rsa' });
const ec = authority.issue('ec');

const algorithms = [
  ['rsa-sha256', rsa, 'SHA-256'],
  ['rsa-sha512', rsa, 'SHA-512'],
  ['ecdsa-sha256', ec, 'SHA-256'],
] as const;

const signerWith = (
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
  ['PSU-ID', 'J\u00f6rg Test'],
  ['PSU-Corporate-ID', 'corp-1'],
  ['psu-ip-address', '192.0.2.1'],
  ['Date', 'Sun, 06 Aug 2017 15:02:37 GMT'],
  ['TPP-Redirect-URI', 'https://tpp.example/back'],
  ['TPP-Nok-Redirect-URI', 'https://tpp.example/nok'],
];

/** Changes a character in the middle, where Base64 has no unused bits. */
const corrupt = (value: string): string => {
  const at = value.length - 12;
  return value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
};

/** One parameter of the Signature field. */
const parameter = (headers: HeaderFields, name: string): string =>
  new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(headerValue(headers, 'signature') ?? '')?.[1] ?? '';

describe('signed request', () => {
  for (const [algorithm, issued, digest] of algorithms) {
    test(`is verified by openssl: ${algorithm}`, async () => {
      const headers = await signerWith(issued, algorithm).sign({ headers: complete, body });
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

    test(`is accepted by the bank, and refused if any signed part has changed: ${algorithm}`, async () => {
      const headers = await signerWith(issued, algorithm).sign({ headers: complete, body });
      assertSignature(authority.cert, headers, body);
      for (const name of ['digest', 'x-request-id', 'psu-id', 'date', 'tpp-redirect-uri', 'signature']) {
        const changed = headers.map(
          ([field, value]) => [field, field.toLowerCase() === name ? corrupt(value) : value] as const,
        );
        assert.throws(() => assertSignature(authority.cert, changed, body), { status: 401 }, name);
      }
      assert.throws(() => assertSignature(authority.cert, headers, Buffer.from(`${body} `)), { status: 401 });
    });
  }

  test('contains the certificate, and its serial number and issuer as key id', async () => {
    const headers = await signerWith(rsa).sign({ headers: complete, body });
    const { serialNumber } = new X509Certificate(rsa.cert);
    assert.equal(
      parameter(headers, 'keyId'),
      `SN=${serialNumber},CA=CN=D-TRUST%20CA%202-1,O=Trust%20Services%2C%20Ltd.,C=DE`,
    );
    const included = Buffer.from(headerValue(headers, 'tpp-signature-certificate') ?? '', 'base64');
    assert.deepEqual(included, new X509Certificate(rsa.cert).raw);
    assert.match(headerValue(headers, 'signature') ?? '', /^keyId="/);
  });

  test('without a body has the digest of zero bytes', async () => {
    const headers = await signerWith(rsa).sign({ headers: complete, body: Buffer.alloc(0) });
    assert.equal(headerValue(headers, 'digest'), 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=');
  });

  test('signs only the fields that are present', async () => {
    const headers = await signerWith(rsa).sign({ headers: complete.slice(0, 2), body });
    assert.equal(parameter(headers, 'headers'), 'digest x-request-id');
    assertSignature(authority.cert, headers, body);
  });

  test('keeps all other fields and their order', async () => {
    const headers = await signerWith(rsa).sign({ headers: complete, body });
    assert.deepEqual(headers.slice(0, complete.length), complete);
    assert.deepEqual(
      headers.slice(complete.length).map(([name]) => name),
      ['Digest', 'Signature', 'TPP-Signature-Certificate'],
    );
  });

  test('is unchanged if the TPP has signed it', async () => {
    const signed = [...complete, ['sigNature', 'keyId="a"'], ['Digest', 'SHA-256=x']] as const;
    assert.equal(await signerWith(rsa).sign({ headers: signed, body }), signed);
  });

  test('has one Digest over the bytes that are sent, instead of the one of the TPP', async () => {
    const headers = await signerWith(rsa).sign({ headers: [...complete, ['digest', 'SHA-256=wrong']], body });
    const digests = headers.filter(([name]) => name.toLowerCase() === 'digest').map(([, value]) => value);
    assert.deepEqual(digests, [`SHA-256=${createHash('sha256').update(body).digest('base64')}`]);
  });

  test('is accepted by the bank for random bodies and field values', async (t) => {
    const { sign } = signerWith(ec, 'ecdsa-sha256');
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
        assertSignature(authority.cert, headers, Buffer.from(bytes));
      }),
      seededRuns(t, 200),
    );
  });
});

describe('bank that requires signatures', () => {
  const refused = (headers: HeaderFields, code: string, ca = authority.cert) =>
    assert.throws(() => assertSignature(ca, headers, body), { code });

  test('refuses an unsigned request', () => refused(complete, 'SIGNATURE_MISSING'));

  test('refuses a certificate of another authority, an expired one, a malformed one, and one of another key', async () => {
    const headers = await signerWith(rsa).sign({ headers: complete, body });
    refused(headers, 'CERTIFICATE_INVALID', stranger.cert);
    const withCertificate = (value: string) =>
      headers.map(([name, old]) => [name, name === 'TPP-Signature-Certificate' ? value : old] as const);
    const expired = authority.issue('expired', { from: '20250101000000Z', until: '20260101000000Z' });
    refused(withCertificate(new X509Certificate(expired.cert).raw.toString('base64')), 'CERTIFICATE_INVALID');
    refused(withCertificate('none'), 'FORMAT_ERROR');
    refused(withCertificate(new X509Certificate(ec.cert).raw.toString('base64')), 'SIGNATURE_INVALID');
  });
});
