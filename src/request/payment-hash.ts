/** The hash of a payment id, which is stored in place of the id itself. */

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

export interface PaymentHash {
  /** The key of the payment in the shared state: contains all of the SHA-256. */
  readonly key: string;
  /** The first 64 bits of the SHA-256. */
  readonly words: HashWords;
}

/** Two signed integers of 32 bits. */
export type HashWords = readonly [high: number, low: number];

/** About 300 bytes each. */
const maxCachedHashes = 10_000;

/** TPPs poll: the hash of a payment id is computed once, not once per read. */
const cachedHashes = new LRUCache<string, PaymentHash>({ max: maxCachedHashes });

export function hashPaymentId(paymentId: string): PaymentHash {
  const cached = cachedHashes.get(paymentId);
  if (cached) return cached;
  const digest = hash('sha256', paymentId, 'buffer');
  const words = [digest.readInt32LE(0), digest.readInt32LE(4)] as const;
  const hashed = { key: `payment:${digest.toString('base64url')}`, words };
  cachedHashes.set(paymentId, hashed);
  return hashed;
}
