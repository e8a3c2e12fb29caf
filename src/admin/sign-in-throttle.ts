/** Limits failed attempts to sign in, by address. A valid credential is never affected: it is checked first. */

import { LRUCache } from 'lru-cache';
import { addressParts } from '../config/network-list.ts';

export interface SignInThrottle {
  /**
   * Counts a failed attempt.
   *
   * @returns 0 if it is within the limit, otherwise the seconds until an attempt is within it again
   */
  countFailure(address: string): number;
}

/** The failures of one address are a token bucket of this size, which regains one in each interval. */
const burst = 30;
const intervalMs = 2_000;
const maxAddresses = 10_000;

/** @param now milliseconds of a monotonic clock */
export function createSignInThrottle(now: () => number = () => performance.now()): SignInThrottle {
  /** When the bucket of an address will be full. */
  // `max` would reserve all memory at once.
  const fullAt = new LRUCache<string, number>({ maxSize: maxAddresses, sizeCalculation: () => 1 });
  return {
    countFailure(address) {
      const key = networkOf(address);
      const current = Math.max(now(), fullAt.get(key) ?? 0);
      const waitMs = current + intervalMs - now() - burst * intervalMs;
      if (waitMs > 0) return Math.ceil(waitMs / 1_000);
      fullAt.set(key, current + intervalMs);
      return 0;
    },
  };
}

/** One host has all addresses of an IPv6 network of 64 bits. */
const networkOf = (address: string) => addressParts(address).slice(0, 4).join(':');
