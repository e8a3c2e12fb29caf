/** Creates self-signed certificates: `node:crypto` only reads them (RFC 5280, in the encoding of ITU-T X.690). */
import { type KeyPairKeyObjectResult, randomBytes, sign } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';

interface CertificateContent {
  /** Names and addresses of the server (SubjectAltName), such as `localhost` and `::1`. */
  readonly hosts: readonly string[];
  /** The first and the last second in which it is valid; in 1950 to 2049. */
  readonly from: Date;
  readonly until: Date;
}

/**
 * A certificate with the common name `simulated bank`, which a client can trust by naming it as a CA certificate.
 *
 * @param pair of P-256
 * @returns PEM
 */
export function selfSignedCertificate(
  { publicKey, privateKey }: KeyPairKeyObjectResult,
  { hosts, from, until }: CertificateContent,
): string {
  const serialNumber = randomBytes(16);
  serialNumber.writeUInt8((serialNumber.readUInt8() & 0x3f) | 0x40); // positive, and without a leading zero
  /** TBSCertificate (RFC 5280 section 4.1); version 3 is 2. */
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, serialNumber),
    ecdsaWithSha256,
    bankName,
    sequence(utcTime(from), utcTime(until)),
    bankName,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(subjectAltName, der(0x04, sequence(...hosts.map(generalName)))))),
  );
  const signature = der(0x03, Buffer.of(0), sign('sha256', content, privateKey));
  const lines =
    sequence(content, ecdsaWithSha256, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

/** One value: tag, length, content. At most 65,535 bytes. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const octets =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...octets), body]);
}

const sequence = (...content: readonly Uint8Array[]) => der(0x30, ...content);
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));

const commonName = objectId('550403');
const subjectAltName = objectId('551d11');
const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'));
const bankName = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from('simulated bank')))));

/** `YYMMDDHHMMSSZ` (RFC 5280 section 4.1.2.5.1). */
const utcTime = (time: Date) =>
  der(0x17, Buffer.from(`${time.toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`));

/** An iPAddress or a dNSName (RFC 5280 section 4.2.1.6). */
function generalName(host: string): Buffer {
  if (isIPv4(host)) return der(0x87, Buffer.from(host.split('.').map(Number)));
  if (isIPv6(host)) return der(0x87, ipv6Bytes(host));
  return der(0x82, Buffer.from(host, 'latin1'));
}

/** @param address may have a zone, as in `fe80::1%eth0`, which is not part of a certificate */
function ipv6Bytes(address: string): Buffer {
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`); // in the form of RFC 5952, without an IPv4 part
  const [before = [], after = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex');
}
