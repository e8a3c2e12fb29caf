/** What openssl has put into a certificate is what is said about it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type CertificateInfo, parseCertificate } from '../../../src/certificates/certificate-info.ts';
import { formatName, formatNameForHeader } from '../../../src/certificates/distinguished-name.ts';
import { certificateView, expiryWarning } from '../../../src/certificates/installed-certificates.ts';
import { lifeOfAllTests } from '../../kit/life.ts';
import { createAuthority, type IssuedCertificate, openssl, psd2Statements } from '../../kit/openssl.ts';
import { seeded } from '../../kit/seeded.ts';
import { certificate } from '../simulated-bank/certificate.ts';

const authority = createAuthority(lifeOfAllTests());
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

const facts = ({ cert }: Pick<IssuedCertificate, 'cert'>): CertificateInfo =>
  parseCertificate(Buffer.from(cert));
const printed = ({ certFile }: IssuedCertificate, ...options: readonly string[]) =>
  openssl('x509', '-in', certFile, '-noout', '-nameopt', 'RFC2253,utf8,-esc_msb', ...options)
    .trim()
    .replace(/^.*?=/, '');

describe('the facts about a certificate', () => {
  test('are the PSP, its roles, its authority and the kind of a QWAC', () => {
    const { qcType, roles, authority: nca, organisationIdentifier } = facts(qwac);
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

  test('tell a seal from a QWAC', () => {
    assert.deepEqual([facts(seal).qcType, facts(seal).roles], ['seal', ['PSP_PI']]);
  });

  test('name subject, issuer, serial number and fingerprint as openssl does', () => {
    for (const issued of [qwac, seal, plain, authority]) {
      const { subject, issuer, serialNumber, sha256 } = facts(issued);
      assert.equal(subject, printed(issued, '-subject'));
      assert.equal(formatName(issuer), printed(issued, '-issuer'));
      assert.equal(serialNumber, printed(issued, '-serial'));
      assert.equal(sha256, printed(issued, '-fingerprint', '-sha256').replaceAll(':', '').toLowerCase());
    }
  });

  test('hold the issuer in a form that may stand in a header, as the OpenAPI file shows it', () => {
    assert.equal(formatNameForHeader(facts(qwac).issuer), 'CN=authority,O=Trust%20Services%2C%20Ltd.,C=DE');
  });

  test('are few for a certificate that states nothing, or has no extensions that matter', () => {
    for (const { qcType, roles, authority: nca, organisationIdentifier } of [
      facts(plain),
      facts({ cert: certificate }),
    ])
      assert.deepEqual([qcType, roles, nca, organisationIdentifier], [null, [], null, null]);
  });

  test('leave out what an issuer has stated oddly', () => {
    const odd = authority.issue('odd', { extensions: '1.3.6.1.5.5.7.1.3 = ASN1:UTF8:PSP_PI' });
    assert.deepEqual([facts(odd).qcType, facts(odd).roles], [null, []]);
  });

  test('are those of the first certificate of a chain', () => {
    const chain = Buffer.from(qwac.cert + authority.cert);
    assert.equal(parseCertificate(chain).subject, facts(qwac).subject);
  });

  test('are told with the days that are left', () => {
    const view = certificateView(facts(qwac), Date.parse('2027-06-01T00:00:00Z'));
    assert.equal(view.notBefore, '2026-01-01T00:00:00.000Z');
    assert.equal(view.notAfter, '2027-06-30T23:59:59.000Z');
    assert.equal(view.daysLeft, 29);
    assert.equal(certificateView(facts(qwac), Date.parse('2027-07-01T00:00:00Z')).daysLeft, -1);
    assert.doesNotThrow(() => JSON.stringify(view));
  });

  test('become a warning when fewer than thirty days are left, and another when none is', () => {
    const at = (day: string, environment = 'production') =>
      expiryWarning({ environment, use: 'qwac', info: facts(qwac) }, Date.parse(day));
    assert.equal(at('2027-05-31T23:00:00Z'), undefined);
    assert.equal(
      at('2027-06-01T00:00:00Z'),
      'the QWAC of production expires in 29 days, on 2027-06-30T23:59:59.000Z',
    );
    assert.equal(
      at('2027-07-01T00:00:00Z'),
      'the QWAC of production has expired on 2027-06-30T23:59:59.000Z',
    );
    assert.match(at('2027-06-30T00:00:00Z', '') ?? '', /^the certificate of the listener expires in 0 days/);
  });

  test('are found or refused, whatever bytes of a certificate are wrong', (t) => {
    const { der } = facts(qwac);
    const bytes = fc.array(fc.tuple(fc.nat(der.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(bytes, (changes) => {
        const broken = Buffer.from(der);
        for (const [at, byte] of changes) broken[at] = byte;
        const pem = `-----BEGIN CERTIFICATE-----\n${broken.toString('base64')}\n-----END CERTIFICATE-----\n`;
        try {
          facts({ cert: pem });
        } catch (thrown) {
          assert.ok(thrown instanceof Error && !(thrown instanceof TypeError), String(thrown));
        }
      }),
      seeded(t, 1_000),
    );
  });
});
