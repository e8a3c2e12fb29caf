import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type CertificateInfo, parseCertificate } from '../../../src/certificates/certificate-info.ts';
import { formatName, formatNameForHeader } from '../../../src/certificates/distinguished-name.ts';
import { certificateView, expiryWarning } from '../../../src/certificates/installed-certificates.ts';
import { createAuthority, type IssuedCertificate, openssl, psd2Statements } from '../../kit/openssl.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';
import { certificate } from '../simulated-bank/certificate.ts';

const authority = createAuthority(scopeOfAllTests());
const psp = '/C=DE/O=Müller, Söhne GmbH/organizationIdentifier=PSDDE-BAFIN-123456/CN=shop.example';
const qwac = authority.issue('qwac', {
  subject: psp,
  extensions: psd2Statements('web', 'PSP_PI', 'PSP_AI'),
  from: '20260101000000Z',
  until: '20270630235959Z',
});
const seal = authority.issue('seal', {
  subject: psp,
  extensions: psd2Statements('seal', 'PSP_PI'),
  key: 'rsa',
});
const plain = authority.issue('plain');

const infoOf = ({ cert }: Pick<IssuedCertificate, 'cert'>): CertificateInfo =>
  parseCertificate(Buffer.from(cert));
const printed = ({ certFile }: IssuedCertificate, ...options: readonly string[]) =>
  openssl('x509', '-in', certFile, '-noout', '-nameopt', 'RFC2253,utf8,-esc_msb', ...options)
    .trim()
    .replace(/^.*?=/, '');

describe('certificate info', () => {
  test('contains the PSP, its roles, its authority and the type of a QWAC', () => {
    const { qcType, roles, authority: nca, organisationIdentifier } = infoOf(qwac);
    assert.deepEqual(
      { qcType, roles, nca, organisationIdentifier },
      {
        qcType: 'web',
        roles: ['PSP_PI', 'PSP_AI'],
        nca: { id: 'DE-BAFIN', name: 'Bundesanstalt für Finanzdienstleistungsaufsicht' },
        organisationIdentifier: 'PSDDE-BAFIN-123456',
      },
    );
  });

  test('distinguishes a QSEAL from a QWAC', () => {
    assert.deepEqual([infoOf(seal).qcType, infoOf(seal).roles], ['seal', ['PSP_PI']]);
  });

  test('formats subject, issuer, serial number and fingerprint as openssl does', () => {
    for (const issued of [qwac, seal, plain, authority]) {
      const { subject, issuer, serialNumber, sha256 } = infoOf(issued);
      assert.equal(subject, printed(issued, '-subject'));
      assert.equal(formatName(issuer), printed(issued, '-issuer'));
      assert.equal(serialNumber, printed(issued, '-serial'));
      assert.equal(sha256, printed(issued, '-fingerprint', '-sha256').replaceAll(':', '').toLowerCase());
    }
  });

  test('percent-encodes the issuer for the Signature header, as in the OpenAPI file of the standard', () => {
    assert.equal(formatNameForHeader(infoOf(qwac).issuer), 'CN=authority,O=Trust%20Services%2C%20Ltd.,C=DE');
  });

  test('has no PSD2 fields if the certificate has no QC statements', () => {
    for (const { qcType, roles, authority: nca, organisationIdentifier } of [
      infoOf(plain),
      infoOf({ cert: certificate }),
    ])
      assert.deepEqual([qcType, roles, nca, organisationIdentifier], [null, [], null, null]);
  });

  test('ignores malformed QC statements', () => {
    const odd = authority.issue('odd', { extensions: '1.3.6.1.5.5.7.1.3 = ASN1:UTF8:PSP_PI' });
    assert.deepEqual([infoOf(odd).qcType, infoOf(odd).roles], [null, []]);
  });

  test('describes the first certificate of a chain', () => {
    const chain = Buffer.from(qwac.cert + authority.cert);
    assert.equal(parseCertificate(chain).subject, infoOf(qwac).subject);
  });

  test('counts the days until the certificate expires', () => {
    const view = certificateView(infoOf(qwac), Date.parse('2027-06-01T00:00:00Z'));
    assert.equal(view.notBefore, '2026-01-01T00:00:00.000Z');
    assert.equal(view.notAfter, '2027-06-30T23:59:59.000Z');
    assert.equal(view.daysLeft, 29);
    assert.equal(certificateView(infoOf(qwac), Date.parse('2027-07-01T00:00:00Z')).daysLeft, -1);
    assert.doesNotThrow(() => JSON.stringify(view));
  });

  test('yields a warning when fewer than 30 days are left, and another after the certificate has expired', () => {
    const info = infoOf(qwac);
    const at = (day: string) =>
      expiryWarning({ environment: 'production', use: 'qwac', info }, Date.parse(day));
    assert.equal(at('2027-05-31T23:00:00Z'), undefined);
    assert.equal(
      at('2027-06-01T00:00:00Z'),
      'the QWAC of production expires in 29 days, on 2027-06-30T23:59:59.000Z',
    );
    assert.equal(
      at('2027-07-01T00:00:00Z'),
      'the QWAC of production expired 1 day ago, on 2027-06-30T23:59:59.000Z',
    );
    for (const [use, name] of [
      ['listener', 'listener'],
      ['admin-listener', 'admin listener'],
    ] as const)
      assert.equal(
        expiryWarning({ environment: '', use, info }, Date.parse('2027-06-30T00:00:00Z')),
        `the certificate of the ${name} expires in 0 days, on 2027-06-30T23:59:59.000Z`,
      );
  });

  test('is parsed or refused with an Error, whichever bytes of a certificate are corrupt', (t) => {
    const { der } = infoOf(qwac);
    const bytes = fc.array(fc.tuple(fc.nat(der.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(bytes, (changes) => {
        const broken = Buffer.from(der);
        for (const [at, byte] of changes) broken[at] = byte;
        const pem = `-----BEGIN CERTIFICATE-----\n${broken.toString('base64')}\n-----END CERTIFICATE-----\n`;
        try {
          infoOf({ cert: pem });
        } catch (thrown) {
          assert.ok(thrown instanceof Error && !(thrown instanceof TypeError), String(thrown));
        }
      }),
      seededRuns(t, 1_000),
    );
  });
});
