/** Whether a certificate can be used: with its key, today, for what it is meant for. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { parseCertificate } from './certificate-info.ts';

/** PEM texts. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** What is wrong, and in which of the files. */
export interface KeyPairError {
  readonly file: 'cert' | 'key' | 'ca';
  /** Goes on from the file's name; quotes nothing of it. */
  readonly message: string;
}

/** Every reason why a certificate and its key cannot be used at that time, in milliseconds since 1970. */
export function keyPairErrors({ cert, key }: KeyPair, nowMs: number): readonly KeyPairError[] {
  const certificate = valueOrUndefined(() => parsePem(cert));
  const secret = valueOrUndefined(() => createPrivateKey(key));
  const faults: KeyPairError[] = [];
  if (!certificate) faults.push({ file: 'cert', message: 'holds no certificate as PEM' });
  if (!secret) faults.push({ file: 'key', message: 'holds no private key as PEM without a passphrase' });
  if (!certificate) return faults;
  if (secret && !certificate.checkPrivateKey(secret))
    faults.push({ file: 'key', message: 'holds the key of another certificate' });
  const time = validityError(certificate, nowMs);
  return time ? [...faults, { file: 'cert', message: time }] : faults;
}

/** Every reason why TLS cannot be spoken with these. @param nowMs milliseconds since 1970 */
export function tlsErrors(
  { pair, ca }: { readonly pair?: KeyPair | undefined; readonly ca?: Buffer | undefined },
  nowMs: number,
): readonly KeyPairError[] {
  const faults = pair ? keyPairErrors(pair, nowMs) : [];
  const unusable = ca && !valueOrUndefined(() => parseAuthorities(ca));
  if (unusable)
    return [...faults, { file: 'ca', message: 'holds no certificate as PEM, or one that is cut off' }];
  // What OpenSSL finds, above all a chain that is cut off, and keys that are too short for it.
  if (faults.length > 0 || valueOrUndefined(() => createSecureContext({ ...pair, ca }))) return faults;
  return [{ file: pair ? 'cert' : 'ca', message: 'holds what TLS cannot use: it is cut off, or too weak' }];
}

/** @throws Error that names every fault */
export function throwKeyPairErrors(
  faults: readonly KeyPairError[],
  files: Readonly<Record<string, string>>,
): void {
  if (faults.length === 0) return;
  throw new Error(faults.map(({ file, message }) => `${files[file]} ${message}`).join('; '));
}

/** OpenSSL would take DER from here as well, and refuse it for TLS later. */
function parsePem(pem: Buffer): X509Certificate {
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('no PEM');
  parseCertificate(pem);
  return new X509Certificate(pem);
}

/** Every one must be whole: OpenSSL would stop at the first that is not, and believe only those before it. */
function parseAuthorities(pem: Buffer): readonly X509Certificate[] {
  parsePem(pem);
  return pem
    .toString('latin1')
    .split(/(?=-----BEGIN CERTIFICATE-----)/)
    .filter((text) => text.startsWith('-----BEGIN'))
    .map((text) => new X509Certificate(text));
}

function validityError({ validFromDate, validToDate }: X509Certificate, nowMs: number): string | undefined {
  if (nowMs > validToDate.getTime())
    return `holds a certificate that has expired on ${validToDate.toISOString()}`;
  if (nowMs < validFromDate.getTime())
    return `holds a certificate that is not valid before ${validFromDate.toISOString()}`;
  return undefined;
}

function valueOrUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
