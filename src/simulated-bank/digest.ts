/** Verifies that a body arrived unchanged: compares `Digest` with the hash of the received bytes. */
import { createHash } from 'node:crypto';
import { type HeaderFields, headerValues } from '../pis/headers.ts';
import { BankError } from './bank-error.ts';

const hashes: Record<string, string> = { 'SHA-256': 'sha256', 'SHA-512': 'sha512' };

/** @throws BankError 401 SIGNATURE_INVALID if a digest does not match the body, 400 FORMAT_ERROR if one cannot be parsed */
export function assertDigest(headers: HeaderFields, body: Buffer): void {
  for (const value of headerValues(headers, 'digest').flatMap((list) => list.split(','))) {
    const [name = '', expected] = split(value.trim());
    const hash = hashes[name.toUpperCase()];
    if (!hash || !expected) {
      throw new BankError(400, 'FORMAT_ERROR', 'Digest must be SHA-256=... or SHA-512=...', {
        path: 'Digest',
      });
    }
    const actual = createHash(hash).update(body).digest('base64');
    if (actual !== expected) {
      const text = `The Digest header does not match the body: its ${name} is ${actual}`;
      throw new BankError(401, 'SIGNATURE_INVALID', text, { path: 'Digest' });
    }
  }
}

/** Splits at the first `=` only: Base64 may end in `=`. */
function split(value: string): readonly [string, string | undefined] {
  const at = value.indexOf('=');
  return at === -1 ? [value, undefined] : [value.slice(0, at), value.slice(at + 1)];
}
