/** An answer, and what the cache has to say about it (RFC 9211; `Age`: RFC 9111 section 5.1). */

import type { HeaderField } from '../pis/headers.ts';
import type { PisResponse } from '../request/messages.ts';
import type { CacheVerdict } from '../request/request-events.ts';
import type { CachedResponse } from './cached-payment.ts';

export interface CacheResult {
  readonly verdict: CacheVerdict;
  readonly response: PisResponse;
  /** What the answer was made of, unless the bank has just given it. */
  readonly entry?: CachedResponse;
  /** Whether whoever asked the same meanwhile may have it too. */
  readonly shareable: boolean;
  /**
   * When it was the newest that anybody knew, at the earliest: milliseconds of `performance.now()`. Who asked later may
   * have seen a newer status before.
   */
  readonly asOfMs: number;
}

/** The answer with what the TPP is told about it. @param nowMs milliseconds since 1970 */
export function withCacheHeaders({ response, verdict, entry }: CacheResult, nowMs: number): PisResponse {
  const ageMs = entry ? Math.max(0, nowMs - entry.fetchedAt) : 0;
  const fields: readonly HeaderField[] = [
    ['Cache-Status', `penstock; ${cacheStatusValue(verdict, entry ? entry.ttlMs - ageMs : 0)}`],
    ...(entry ? ([['Age', String(Math.floor(ageMs / 1_000))]] as const) : []),
  ];
  return { ...response, headers: [...response.headers, ...fields], servedFrom: sources[verdict] };
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
