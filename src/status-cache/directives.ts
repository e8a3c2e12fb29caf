/** What a request and an answer say about caching (RFC 9111), as far as it makes sense for a status read. */

import type { PisRequest, PisResponse } from '../flow/messages.ts';
import { type HeaderFields, headerValue, headerValues, listMembers } from '../pis/headers.ts';

/** How a status read wants to be answered. */
export type Wish = 'any' | 'ask-the-bank' | 'only-if-cached' | 'leave-the-cache-alone';

/** Fields with which a request asks for something else than the whole current answer, or for an answer to itself alone. */
const singular = [
  'signature',
  'range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
];

/** RFC 9111 section 5.2.1. A signed read was checked by the bank once only: it is never answered by another's. */
export function wishOf({ headers }: PisRequest): Wish {
  const directives = listMembers(headers, 'cache-control');
  if (directives.includes('no-store')) return 'leave-the-cache-alone';
  if (singular.some((name) => headerValue(headers, name) !== undefined)) return 'leave-the-cache-alone';
  if (directives.includes('only-if-cached')) return 'only-if-cached';
  return directives.some((one) => one === 'no-cache' || one === 'max-age=0') ? 'ask-the-bank' : 'any';
}

/** Request fields that an entry's key holds: an answer may vary with these. */
const keyed: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'consent-id',
  'psu-id',
]);

/**
 * Whether an answer may be kept for equal requests (RFC 9111 section 3). `private` may: every entry belongs to one
 * tenant and its credentials.
 */
export function mayBeKept({ status, headers }: PisResponse): boolean {
  if (status !== 200 || headerValue(headers, 'set-cookie') !== undefined) return false;
  if (listMembers(headers, 'cache-control').some((one) => one === 'no-store' || one === 'no-cache'))
    return false;
  return listMembers(headers, 'vary').every((name) => keyed.has(name));
}

/** How old the answer was when it came, by its own `Age`, in milliseconds (RFC 9111 section 5.1). */
export function ageOnArrivalMs(headers: HeaderFields): number {
  return secondsIn(headerValues(headers, 'age')[0]) ?? 0;
}

/** What the bank itself allows at most (`max-age`), in milliseconds. */
export function allowedMs(headers: HeaderFields): number {
  const maxAge = listMembers(headers, 'cache-control').find((one) => one.startsWith('max-age='));
  return secondsIn(maxAge?.slice('max-age='.length)) ?? Number.POSITIVE_INFINITY;
}

function secondsIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : undefined;
}
