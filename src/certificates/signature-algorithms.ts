/** How requests may be signed, and with which keys (draft-cavage-http-signatures-12, appendix E.2). */

import { createPrivateKey } from 'node:crypto';
import { type KeyPair, type KeyPairError, keyPairErrors } from './validate-key-pair.ts';

interface SignatureAlgorithm {
  /** As node:crypto names it. */
  readonly hash: 'sha256' | 'sha512';
  /** As the `Digest` header names it. */
  readonly digest: 'SHA-256' | 'SHA-512';
  /** `asymmetricKeyType` of node:crypto. */
  readonly keyType: 'rsa' | 'ec';
}

/** By the name that stands in the `Signature` header. */
export const signatureAlgorithms = {
  'rsa-sha256': { hash: 'sha256', digest: 'SHA-256', keyType: 'rsa' },
  'rsa-sha512': { hash: 'sha512', digest: 'SHA-512', keyType: 'rsa' },
  'ecdsa-sha256': { hash: 'sha256', digest: 'SHA-256', keyType: 'ec' },
} as const satisfies Record<string, SignatureAlgorithm>;

export type SignatureAlgorithmName = keyof typeof signatureAlgorithms;

/** Every reason why requests cannot be sealed with these. @param nowMs milliseconds since 1970 */
export function signingKeyErrors(
  pair: KeyPair,
  algorithm: SignatureAlgorithmName,
  nowMs: number,
): readonly KeyPairError[] {
  const faults = keyPairErrors(pair, nowMs);
  if (faults.some(({ file }) => file === 'key')) return faults;
  if (createPrivateKey(pair.key).asymmetricKeyType === signatureAlgorithms[algorithm].keyType) return faults;
  return [...faults, { file: 'key', message: `holds no key for ${algorithm}` }];
}
