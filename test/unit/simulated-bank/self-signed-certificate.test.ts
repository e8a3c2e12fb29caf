import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { selfSignedCertificate } from '../../../src/simulated-bank/self-signed-certificate.ts';

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const certificateFor = (...hosts: readonly string[]) =>
  new X509Certificate(
    selfSignedCertificate(pair, {
      hosts,
      from: new Date('2026-01-02T03:04:05Z'),
      until: new Date('2027-12-31T23:59:59Z'),
    }),
  );

describe('a self-signed certificate', () => {
  test('is signed with its own key, and valid from its first second until its last', () => {
    const certificate = certificateFor('localhost');
    assert.ok(certificate.verify(pair.publicKey));
    assert.ok(certificate.checkIssued(certificate));
    assert.equal(certificate.validFromDate.toISOString(), '2026-01-02T03:04:05.000Z');
    assert.equal(certificate.validToDate.toISOString(), '2027-12-31T23:59:59.000Z');
  });

  test('has another serial number than the one before, because clients expect that of one issuer', () => {
    assert.notEqual(certificateFor('localhost').serialNumber, certificateFor('localhost').serialNumber);
  });

  test('names hosts, IPv4 addresses and IPv6 addresses in all their forms', () => {
    for (const address of ['192.0.2.1', '::', '::1', '2001:db8::a:1', '1:2:3:4:5:6:7:8', '::ffff:192.0.2.1'])
      assert.ok(certificateFor('localhost', address).checkIP(address), address);
    assert.ok(certificateFor('fe80::1%eth0').checkIP('fe80::1'));
    assert.ok(certificateFor('::1', 'bank.example').checkHost('bank.example'));
    assert.equal(certificateFor('bank.example').checkHost('other.example'), undefined);
  });

  test('has lengths of one, two and three bytes, each as short as possible, as DER requires', () => {
    const label = 'a'.repeat(60);
    for (const [host, length] of [
      ['bank.example', [12]],
      [`${label}.${label}.${label}.example`, [0x81, 190]],
      [Array(5).fill(label).join('.'), [0x82, 1, 48]],
    ] as const) {
      const certificate = certificateFor(host);
      assert.ok(certificate.raw.includes(Buffer.of(0x82, ...length, host.charCodeAt(0))), host);
    }
  });
});
