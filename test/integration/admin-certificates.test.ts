/** Operators see which certificates are in use and when they expire, before it is too late. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { readTimeline } from '../kit/fleet-view.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import {
  copyCertificateFiles,
  createAuthority,
  inDays,
  psd2Statements,
  replaceCertificateFiles,
} from '../kit/openssl.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const authority = createAuthority(scopeOfAllTests());
const subject = '/C=DE/O=Shop GmbH/organizationIdentifier=PSDDE-BAFIN-123456/CN=shop.example';
const clientCertificate = authority.issue('qwac', {
  subject,
  until: '20991231120000Z',
  extensions: psd2Statements('web', 'PSP_PI', 'PSP_AI'),
});
const seal = authority.issue('seal', {
  subject,
  until: inDays(12.5),
  extensions: psd2Statements('seal', 'PSP_PI'),
});
const listenerCertificate = authority.issue('listener', { until: inDays(29.5) });

/** A gateway with a certificate for each use. Environment `production` has none. */
async function startCertified(t: TestContext) {
  const used = copyCertificateFiles(temporaryFolder(t), 'seal', seal);
  const gateway = await startGateway(t, {
    listen: { tls: { certFile: listenerCertificate.certFile, keyFile: listenerCertificate.keyFile } },
    environments: {
      active: 'sandbox',
      sandbox: {
        baseUrl: 'https://127.0.0.1:9',
        tls: { certFile: clientCertificate.certFile, keyFile: clientCertificate.keyFile },
        signing: { certFile: used.certFile, keyFile: used.keyFile, algorithm: 'ecdsa-sha256' },
      },
      production: { baseUrl: 'https://127.0.0.1:10' },
    },
  });
  const text = async (path: string) => (await call(gateway.adminUrl, { method: 'GET', path })).text;
  const ready = async () => {
    const { status, text: body } = await call(gateway.adminUrl, { method: 'GET', path: '/health/ready' });
    const { reasons }: { reasons: readonly string[] } = JSON.parse(body);
    return { status, reasons: reasons.filter((reason) => /certificate|QWAC|QSealC/.test(reason)) };
  };
  const expiries = async () =>
    (await text('/metrics'))
      .split('\n')
      .filter((line) => line.startsWith('penstock_certificate_expiry_seconds{'))
      .toSorted();
  return { gateway, used, ready, expiries };
}

describe('the certificates of a gateway', () => {
  test('are shown by the admin API with subject, roles and expiry', async (t) => {
    const { gateway } = await startCertified(t);
    const { environments } = await readAdminApi(gateway, '/api/environments');
    const [sandbox, production] = environments as Record<string, Record<string, unknown>>[]; // as the API has it
    const { certificate = {}, signingCertificate = {} } = sandbox ?? {};
    assert.equal(
      certificate.subject,
      'CN=shop.example,organizationIdentifier=PSDDE-BAFIN-123456,O=Shop GmbH,C=DE',
    );
    assert.equal(certificate.organisationIdentifier, 'PSDDE-BAFIN-123456');
    assert.deepEqual(certificate.roles, ['PSP_PI', 'PSP_AI']);
    assert.deepEqual([certificate.qcType, signingCertificate.qcType], ['web', 'seal']);
    assert.equal(certificate.notAfter, '2099-12-31T12:00:00.000Z');
    assert.equal(signingCertificate.daysLeft, 12);
    assert.deepEqual([production?.certificate, production?.signingCertificate], [null, null]);
  });

  test('have an expiry metric, which follows the files', async (t) => {
    const { used, expiries } = await startCertified(t);
    const [listener, qseal, qwac, ...more] = await expiries();
    assert.match(listener ?? '', /\{environment="",use="listener"\} \d+$/);
    assert.equal(qwac, 'penstock_certificate_expiry_seconds{environment="sandbox",use="qwac"} 4102401600');
    assert.match(qseal ?? '', /\{environment="sandbox",use="qseal"\} \d+$/);
    assert.deepEqual(more, []);
    replaceCertificateFiles(used, authority.issue('next-seal', { until: '20991231120000Z' }));
    await until(
      5_000,
      'the metric shows the new certificate',
      async () => (await expiries())[1]?.endsWith(' 4102401600') === true,
    );
  });

  test('are named in /health/ready for their last thirty days, while the gateway stays ready', async (t) => {
    const { ready, used } = await startCertified(t);
    const { status, reasons } = await ready();
    assert.equal(status, 200);
    assert.equal(reasons.length, 2);
    assert.match(reasons[0] ?? '', /^the certificate of the listener expires in 29 days, on 20/);
    assert.match(reasons[1] ?? '', /^the QSealC of sandbox expires in 12 days, on 20/);
    replaceCertificateFiles(used, authority.issue('renewed-seal'));
    await until(5_000, 'the warning ends', async () => (await ready()).reasons.length === 1);
  });

  test('are in the timeline when they are in use, expire soon, are replaced, or cannot be used', async (t) => {
    const { gateway, used } = await startCertified(t);
    const entries = async () =>
      (await readTimeline(gateway)).filter(({ kind }) => kind === 'certificate').toReversed();
    const texts = async () => (await entries()).map(({ text }) => text.replace(/20\S+$/, 'DATE'));
    await until(5_000, 'all entries of the start', async () => (await texts()).length === 5);
    assert.deepEqual((await texts()).toSorted(), [
      'listener: certificate in use until DATE',
      'sandbox, QSealC: certificate in use until DATE',
      'sandbox, QWAC: certificate in use until DATE',
      'the QSealC of sandbox expires in 12 days, on DATE',
      'the certificate of the listener expires in 29 days, on DATE',
    ]);

    replaceCertificateFiles(used, authority.issue('timeline-seal', { until: '20991231120000Z' }));
    await until(5_000, 'the new certificate', async () => (await texts()).length === 6);
    const replaced = (await entries()).at(-1);
    assert.deepEqual([replaced?.environment, replaced?.who], ['sandbox', null]);
    assert.equal(replaced?.details.notAfter, '2099-12-31T12:00:00.000Z');

    writeFileSync(used.certFile, 'no certificate');
    await until(5_000, 'the rejected file', async () => (await texts()).length === 7);
    assert.match(
      (await texts()).at(-1) ?? '',
      /^the new certificate is not usable; the old one stays in use: /,
    );
  });
});
