/** The signature algorithms for requests, and the keys they need (draft-cavage-http-signatures-12, appendix E.2). */

import { createPrivateKey } from 'node:crypto';
import { type KeyPair, type KeyPairError, validateKeyPair } from './validate-key-pair.ts';

interface SignatureAlgorithm {
  /** Name in node:crypto. */
  readonly hash: 'sha256' | 'sha512';
  /** Name in the `Digest` header. */
  readonly digest: 'SHA-256' | 'SHA-512';
  /** `asymmetricKeyType` of node:crypto. */
  readonly keyType: 'rsa' | 'ec';
}

/** Keyed by the algorithm name in the `Signature` header. */
export const signatureAlgorithms = {
  'rsa-sha256': { hash: 'sha256', digest: 'SHA-256', keyType: 'rsa' },
  'rsa-sha512': { hash: 'sha512', digest: 'SHA-512', keyType: 'rsa' },
  'ecdsa-sha256': { hash: 'sha256', digest: 'SHA-256', keyType: 'ec' },
} as const satisfies Record<string, SignatureAlgorithm>;

export type SignatureAlgorithmName = keyof typeof signatureAlgorithms;

/** @returns every reason why this pair cannot sign requests @param nowMs milliseconds since 1970 */
export function validateSigningKeyPair(
  pair: KeyPair,
  algorithm: SignatureAlgorithmName,
  nowMs: number,
): readonly KeyPairError[] {
  const errors = validateKeyPair(pair, nowMs);
  if (errors.some(({ file }) => file === 'key')) return errors;
  if (createPrivateKey(pair.key).asymmetricKeyType === signatureAlgorithms[algorithm].keyType) return errors;
  return [...errors, { file: 'key', message: `contains no key for ${algorithm}` }];
}
