/** The result of a status read, and the response fields that describe it (RFC 9211; `Age`: RFC 9111 section 5.1). */

import type { PisResponse } from '../request/messages.ts';
import type { CacheVerdict } from '../request/request-events.ts';
import { type CachedResponse, isExpired } from './cached-payment.ts';

export interface CacheResult {
  readonly verdict: CacheVerdict;
  readonly response: PisResponse;
  /** The source of `response`, unless it has just come from the bank. */
  readonly cached?: CachedResponse;
  /** Whether equal reads that joined this flight may get the response as well. */
  readonly shareable: boolean;
  /**
   * The earliest time at which this was the newest status known: milliseconds of `performance.now()`. A read that arrived
   * later may have to return a newer one.
   */
  readonly asOfMs: number;
}

/** The result for a read that joined the flight; a cached response is a hit for every read. */
export function asShared(result: CacheResult): CacheResult {
  const cameFromBank = result.verdict === 'miss' || result.verdict === 'request';
  return cameFromBank ? { ...result, verdict: 'shared' } : result;
}

/** @param nowMs milliseconds since 1970 */
export function withCacheHeaders(
  { response, verdict, cached }: Pick<CacheResult, 'response' | 'verdict' | 'cached'>,
  nowMs: number,
): PisResponse {
  const ageMs = cached ? Math.max(0, nowMs - cached.fetchedAtMs) : 0;
  const headers = response.headers.slice();
  const ttlMs = cached && !isExpired(cached) ? cached.ttlMs : 0;
  headers.push(['Cache-Status', `penstock; ${cacheStatusValue(verdict, ttlMs - ageMs)}`]);
  if (cached) headers.push(['Age', String(Math.floor(ageMs / 1_000))]);
  return { ...response, headers, servedFrom: sources[verdict] };
}

const sources = {
  hit: 'cache',
  stale: 'stale-cache',
  shared: 'shared',
  miss: 'bank',
  request: 'bank',
  bypass: 'bank',
} as const satisfies Record<CacheVerdict, PisResponse['servedFrom']>;

function cacheStatusValue(verdict: CacheVerdict, freshForMs: number): string {
  const ttl = `ttl=${Math.ceil(freshForMs / 1_000)}`;
  switch (verdict) {
    case 'hit':
      return `hit; ${ttl}`;
    case 'stale':
      return `hit; fwd=stale; ${ttl}`;
    case 'shared':
      return 'fwd=miss; collapsed';
    case 'miss':
      return 'fwd=miss';
    case 'request':
      return 'fwd=request';
    case 'bypass':
      return 'fwd=bypass';
  }
}
