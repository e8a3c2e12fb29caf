/** Signatures are verified by openssl and by the simulated bank. */

import assert from 'node:assert/strict';
import { createHash, verify, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type HeaderFields, headerValue, headerValues } from '../../../src/pis/headers.ts';
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

/** What the configuration has by default. */
const defaults = {
  keyId: undefined,
  headers: ['digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'date', 'tpp-redirect-uri'],
  addDate: false,
};

type Signer = ReturnType<typeof createRequestSigner>;

/** A signer of requests that all have the same request line, unless they name another one. */
function signerWith(
  { certFile, keyFile, cert, key }: IssuedCertificate,
  algorithm: (typeof algorithms)[number][0] = 'rsa-sha256',
  settings: Partial<Omit<Parameters<typeof createRequestSigner>[0], 'algorithm'>> = {},
) {
  const signer = createRequestSigner(
    { ...defaults, certFile, keyFile, algorithm, ...settings },
    (file) => Buffer.from(file === certFile ? cert : key),
    'bank.example:8443',
  );
  type Signed = Parameters<Signer['sign']>[0];
  return {
    sign: (request: Pick<Signed, 'headers' | 'body'> & Partial<Signed>) =>
      signer.sign({ method: 'POST', path: '/psd2/v1/payments/sepa-credit-transfers', ...request }),
  };
}

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
      ['Digest', 'TPP-Signature-Certificate', 'Signature'],
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

describe('the settings of signatures', () => {
  /** Checks a signature with node:crypto over these lines. */
  const assertSigned = (headers: HeaderFields, lines: readonly string[], hash = 'sha256') => {
    const names = lines.map((line) => line.slice(0, line.indexOf(': ')));
    assert.equal(parameter(headers, 'headers'), names.join(' '));
    const signature = Buffer.from(parameter(headers, 'signature'), 'base64');
    const signed = Buffer.from(lines.join('\n'), 'latin1');
    assert.ok(verify(hash, signed, new X509Certificate(rsa.cert).publicKey, signature), lines.join('\n'));
  };
  const digestWith = (hash: 'sha256' | 'sha512') => createHash(hash).update(body).digest('base64');

  test('select what is signed, in their order, with the request target and its query', async () => {
    const names = ['(request-target)', 'host', 'x-unknown', 'psu-ip-address', 'digest', 'x-request-id'];
    const { sign } = signerWith(rsa, 'rsa-sha512', { headers: names });
    const path = '/api/v1/payments/sepa-credit-transfers/a%2Fb?bic=HABAEE2X&app-id=l7';
    const headers = await sign({ method: 'DELETE', path, headers: complete, body });
    assertSigned(
      headers,
      [
        `(request-target): delete ${path}`,
        'host: bank.example:8443',
        'psu-ip-address: 192.0.2.1',
        `digest: SHA-512=${digestWith('sha512')}`,
        'x-request-id: 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
      ],
      'sha512',
    );
    assert.equal(headerValue(headers, 'digest'), `SHA-512=${digestWith('sha512')}`);
    assert.equal(headerValue(headers, 'host'), undefined);
  });

  test('can include the certificate, and a field that is sent twice', async () => {
    const { sign } = signerWith(rsa, 'rsa-sha256', { headers: ['x-list', 'tpp-signature-certificate'] });
    const headers = await sign({ headers: [...complete, ['X-List', 'a'], ['x-list', 'b']], body });
    const certificate = new X509Certificate(rsa.cert).raw.toString('base64');
    assertSigned(headers, ['x-list: a, b', `tpp-signature-certificate: ${certificate}`]);
    assert.equal(headerValue(headers, 'digest'), `SHA-256=${digestWith('sha256')}`);
  });

  test('replace the keyId, such as by a decimal serial number', async () => {
    const keyId = BigInt(`0x${new X509Certificate(rsa.cert).serialNumber}`).toString();
    const headers = await signerWith(rsa, 'rsa-sha512', { keyId }).sign({ headers: complete, body });
    assert.match(
      headerValue(headers, 'signature') ?? '',
      new RegExp(`^keyId="${keyId}",algorithm="rsa-sha512",`),
    );
  });

  test('add a fresh Date, and never replace one', async (t) => {
    const now = Date.now();
    t.mock.timers.enable({ apis: ['Date'], now });
    const { sign } = signerWith(rsa, 'rsa-sha256', { addDate: true });
    const [requestId] = complete;
    assert.ok(requestId);
    for (const date of [now, now + 10_000].map((ms) => new Date(ms).toUTCString())) {
      assert.match(date, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
      const headers = await sign({ headers: [requestId], body });
      assertSigned(headers, [
        `digest: SHA-256=${digestWith('sha256')}`,
        `x-request-id: ${requestId[1]}`,
        `date: ${date}`,
      ]);
      assert.equal(headerValue(headers, 'date'), date);
      t.mock.timers.tick(10_000);
    }
    const own = await sign({ headers: [requestId, ['date', 'Sun, 06 Aug 2017 15:02:37 GMT']], body });
    assert.deepEqual(headerValues(own, 'date'), ['Sun, 06 Aug 2017 15:02:37 GMT']);
    const without = await signerWith(rsa).sign({ headers: [requestId], body });
    assert.equal(headerValue(without, 'date'), undefined);
    const signedByTpp: HeaderFields = [requestId, ['Signature', 'keyId="a"']];
    assert.equal(await sign({ headers: signedByTpp, body }), signedByTpp);
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
