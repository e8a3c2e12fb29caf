/** How requests may be signed, and with which keys (draft-cavage-http-signatures-12, appendix E.2). */

import { createPrivateKey } from 'node:crypto';
import { type KeyPair, type PairFault, pairFaults } from './key-pair.ts';

interface SealAlgorithm {
  /** As node:crypto names it. */
  readonly hash: 'sha256' | 'sha512';
  /** As the `Digest` header names it. */
  readonly digest: 'SHA-256' | 'SHA-512';
  /** `asymmetricKeyType` of node:crypto. */
  readonly keyType: 'rsa' | 'ec';
}

/** By the name that stands in the `Signature` header. */
export const sealAlgorithms = {
  'rsa-sha256': { hash: 'sha256', digest: 'SHA-256', keyType: 'rsa' },
  'rsa-sha512': { hash: 'sha512', digest: 'SHA-512', keyType: 'rsa' },
  'ecdsa-sha256': { hash: 'sha256', digest: 'SHA-256', keyType: 'ec' },
} as const satisfies Record<string, SealAlgorithm>;

export type SealAlgorithmName = keyof typeof sealAlgorithms;

/** Every reason why requests cannot be sealed with these. @param nowMs milliseconds since 1970 */
export function sealFaults(pair: KeyPair, algorithm: SealAlgorithmName, nowMs: number): readonly PairFault[] {
  const faults = pairFaults(pair, nowMs);
  if (faults.some(({ lies }) => lies === 'key')) return faults;
  if (createPrivateKey(pair.key).asymmetricKeyType === sealAlgorithms[algorithm].keyType) return faults;
  return [...faults, { lies: 'key', message: `holds no key for ${algorithm}` }];
}
