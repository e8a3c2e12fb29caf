/** Validates certificates and keys before they are used: they match, are within their validity, and work for TLS. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { parseCertificate } from './certificate-info.ts';

/** PEM files. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface KeyPairError {
  readonly file: 'cert' | 'key' | 'ca';
  /** Completes a sentence that begins with the file's name. Quotes nothing of the content. */
  readonly message: string;
}

/** @returns every reason why the certificate and its key cannot be used @param nowMs milliseconds since 1970 */
export function validateKeyPair({ cert, key }: KeyPair, nowMs: number): readonly KeyPairError[] {
  const certificate = valueOrUndefined(() => parsePem(cert));
  const privateKey = valueOrUndefined(() => createPrivateKey(key));
  const errors: KeyPairError[] = [];
  if (!certificate) errors.push({ file: 'cert', message: 'contains no certificate in PEM format' });
  if (!privateKey)
    errors.push({ file: 'key', message: 'contains no private key in PEM format without a passphrase' });
  if (!certificate) return errors;
  if (privateKey && !certificate.checkPrivateKey(privateKey))
    errors.push({ file: 'key', message: 'does not match the certificate' });
  const invalid = validityError(certificate, nowMs);
  return invalid ? [...errors, { file: 'cert', message: invalid }] : errors;
}

/** @returns every reason why TLS cannot use these files @param nowMs milliseconds since 1970 */
export function validateTls(
  { pair, ca }: { readonly pair?: KeyPair | undefined; readonly ca?: Buffer | undefined },
  nowMs: number,
): readonly KeyPairError[] {
  if (!pair && !ca) return [];
  const errors = pair ? validateKeyPair(pair, nowMs) : [];
  if (ca && !valueOrUndefined(() => parseAuthorities(ca)))
    return [...errors, { file: 'ca', message: 'contains no certificate in PEM format, or a truncated one' }];
  // OpenSSL also rejects truncated chains, and keys that are too short.
  if (errors.length > 0 || valueOrUndefined(() => createSecureContext({ ...pair, ca }))) return errors;
  return [
    {
      file: pair ? 'cert' : 'ca',
      message: 'cannot be used for TLS: it is truncated, or its key is too weak',
    },
  ];
}

/** @param files the names of the files @throws Error with every error, if there are any */
export function throwKeyPairErrors(
  errors: readonly KeyPairError[],
  files: Readonly<Record<string, string>>,
): void {
  if (errors.length === 0) return;
  throw new Error(errors.map(({ file, message }) => `${files[file]} ${message}`).join('; '));
}

/** Requires PEM: X509Certificate also accepts DER, which TLS would reject later. */
function parsePem(pem: Buffer): X509Certificate {
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('no PEM');
  parseCertificate(pem);
  return new X509Certificate(pem);
}

/** Requires every certificate to be complete: OpenSSL would stop at the first damaged one and ignore the rest. */
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
    return `contains a certificate that expired on ${validToDate.toISOString()}`;
  if (nowMs < validFromDate.getTime())
    return `contains a certificate that is not valid before ${validFromDate.toISOString()}`;
  return undefined;
}

function valueOrUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
