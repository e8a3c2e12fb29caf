/** Selects requests in doubt by their properties. */

import type { InDoubtWrite } from '../idempotency/in-doubt.ts';

/** All conditions must hold; an empty filter matches every request. */
export interface InDoubtFilter {
  readonly environment?: string | undefined;
  readonly tenant?: string | undefined;
  readonly operation?: string | undefined;
  /** The X-Request-ID, in any letter case. */
  readonly requestId?: string | undefined;
  /** The minimum age in milliseconds. */
  readonly olderThanMs?: number | undefined;
  /** Bounds of the time of the request, both included, in ISO 8601. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** A part of the reason, in any letter case. */
  readonly why?: string | undefined;
}

/** @param atMs the time from which ages are counted, in milliseconds since 1970 */
export function matches(entry: InDoubtWrite['entry'], filter: InDoubtFilter, atMs: number): boolean {
  const { since } = entry;
  return (
    isEqual(entry.environment, filter.environment) &&
    isEqual(entry.tenant, filter.tenant) &&
    isEqual(entry.operation, filter.operation) &&
    isEqual(entry.requestId.toLowerCase(), filter.requestId?.toLowerCase()) &&
    (filter.olderThanMs === undefined || since <= atMs - filter.olderThanMs) &&
    (filter.from === undefined || since >= Date.parse(filter.from)) &&
    (filter.to === undefined || since <= Date.parse(filter.to)) &&
    (filter.why === undefined || entry.why.toLowerCase().includes(filter.why.toLowerCase()))
  );
}

const isEqual = (value: string, wanted: string | undefined) => wanted === undefined || value === wanted;
