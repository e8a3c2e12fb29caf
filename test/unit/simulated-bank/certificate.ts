/** A key and self-signed certificates for 127.0.0.1, made anew at each run: no private key lies in the repository. */
import { generateKeyPairSync, sign } from 'node:crypto';

/** One DER value (X.690): tag, length, content. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length = body.length < 0x80 ? [body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...length), body]);
}
const sequence = (...content: readonly Uint8Array[]) => der(0x30, ...content);
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const time = (text: string) => der(0x17, Buffer.from(text));

const commonName = objectId('550403');
const subjectAltName = objectId('551d11');
const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'));

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from('simulated bank')))));
const addresses = sequence(der(0x87, Buffer.of(127, 0, 0, 1)));

/** PEM. */
export const certificate = certificateValid('250101000000Z', '491231235959Z');

/** PEM. */
export const key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** PEM. @param from its first second, @param until its last: UTCTime (RFC 5280 section 4.1.2.5.1) */
export function certificateValid(from: string, until: string): string {
  /** TBSCertificate (RFC 5280 section 4.1). */
  const content = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    ecdsaWithSha256,
    name,
    sequence(time(from), time(until)),
    name,
    pair.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(subjectAltName, der(0x04, addresses)))),
  );
  const signature = der(0x03, Buffer.of(0), sign('sha256', content, pair.privateKey));
  const base64 = sequence(content, ecdsaWithSha256, signature).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`;
}
