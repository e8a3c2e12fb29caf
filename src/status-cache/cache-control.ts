/** What a request and an answer say about caching (RFC 9111), as far as it makes sense for a status read. */

import { type HeaderFields, headerValue, headerValues, listMembers } from '../pis/headers.ts';
import { finalityOf } from '../pis/transaction-status.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';

/** How a status read wants to be answered; `impossible`: neither by the cache nor by the bank. */
export type CacheMode = 'any' | 'ask-the-bank' | 'only-if-cached' | 'leave-the-cache-alone' | 'impossible';

/** Fields with which a request asks for something else than the whole current answer, or for an answer to itself alone. */
const bypassFields = [
  'signature',
  'range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
];

/** RFC 9111 section 5.2.1. A signed read was checked by the bank once only: it is never answered by another's. */
export function cacheModeOf({ headers }: PisRequest): CacheMode {
  const directives = directivesIn(headers);
  const wantsTheBank = directives.has('no-cache') || directives.get('max-age') === '0';
  const isSingular = bypassFields.some((name) => headerValue(headers, name) !== undefined);
  if (directives.has('only-if-cached')) return wantsTheBank || isSingular ? 'impossible' : 'only-if-cached';
  if (isSingular || directives.has('no-store')) return 'leave-the-cache-alone';
  return wantsTheBank ? 'ask-the-bank' : 'any';
}

/** Request fields that tell who asks: every entry belongs to these. */
export const credentialFields = ['authorization', 'cookie'] as const;

/** Further request fields that an answer may vary with, for all of which an entry's key holds the values. */
export const variantFields = [
  'accept',
  'accept-encoding',
  'accept-language',
  'consent-id',
  'psu-id',
  'psu-id-type',
  'psu-corporate-id',
  'psu-corporate-id-type',
] as const;

/** All request fields that an entry belongs to. */
export const keyedFields: ReadonlySet<string> = new Set([...credentialFields, ...variantFields]);

/**
 * Whether an answer may be kept for equal requests (RFC 9111 section 3). `private` may if the request had credentials:
 * the entry then belongs to nobody else.
 */
export function isStorable(request: PisRequest, { status, headers }: PisResponse): boolean {
  if (status !== 200 || headerValue(headers, 'set-cookie') !== undefined) return false;
  const directives = directivesIn(headers);
  if (directives.has('no-store') || directives.has('no-cache')) return false;
  const hasOwner = credentialFields.some((name) => headerValue(request.headers, name) !== undefined);
  if (directives.has('private') && !hasOwner) return false;
  return listMembers(headers, 'vary').every((name) => keyedFields.has(name));
}

/** Whether the bank wants to be asked before an answer that is no longer fresh is used (RFC 9111 section 4.2.4). */
export function forbidsStale(headers: HeaderFields): boolean {
  const directives = directivesIn(headers);
  return ['must-revalidate', 'proxy-revalidate', 's-maxage'].some((name) => directives.has(name));
}

/** How old the answer was when it came, by its own `Age`, in milliseconds (RFC 9111 section 5.1). */
export function initialAgeMs(headers: HeaderFields): number {
  return parseDeltaSeconds(headerValues(headers, 'age')[0]) ?? 0;
}

/**
 * How long the bank itself allows an answer to be used, in milliseconds; not at all, if it cannot be understood (RFC
 * 9111 sections 4.2.1 and 5.3).
 *
 * @param nowMs milliseconds since 1970
 */
export function freshnessLifetimeMs(headers: HeaderFields, nowMs: number): number {
  const directives = directivesIn(headers);
  const lives = ['max-age', 's-maxage'].filter((name) => directives.has(name));
  if (lives.length > 0) return Math.min(...lives.map((name) => parseDeltaSeconds(directives.get(name)) ?? 0));
  const expires = headerValue(headers, 'expires');
  if (expires === undefined) return Number.POSITIVE_INFINITY;
  const sentAt = Date.parse(headerValue(headers, 'date') ?? '') || nowMs;
  return Math.max(0, (Date.parse(expires) || 0) - sentAt);
}

/** The directives of `Cache-Control` by name, with their arguments; of several equal ones the first. A `;` is a common slip. */
function directivesIn(headers: HeaderFields): ReadonlyMap<string, string> {
  const members = listMembers(headers, 'cache-control').flatMap((member) => member.split(';'));
  const pairs = members.map((member): [string, string] => {
    const [name = '', argument = ''] = member.split('=', 2);
    return [name.trim(), argument.trim().replaceAll('"', '')];
  });
  return new Map(pairs.toReversed());
}

/** In milliseconds; what is too large counts as the largest (RFC 9111 section 1.2.2). */
function parseDeltaSeconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Math.min(Number(text), 2 ** 31) * 1_000 : undefined;
}

// MERGED HEADER (rewrite or remove):
/* How long a status may be served without asking the bank: by what it is, and by how long it has rested. */

/** All in milliseconds. */
export interface FreshnessSettings {
  readonly finalTtl: number;
  readonly settledTtl: number;
  readonly pendingTtl: number;
  readonly pendingTtlMax: number;
}

/** A status that has rested for ten seconds will hardly change within the next one. */
const pendingTtlShare = 0.1;

/**
 * @param status         transaction status, or `undefined` if the answer names none: then it may change at any time
 * @param unchangedForMs how long the payment is known to have had it
 * @returns milliseconds
 */
export function statusTtlMs(
  { finalTtl, settledTtl, pendingTtl, pendingTtlMax }: FreshnessSettings,
  paymentService: string,
  status: string | undefined,
  unchangedForMs: number,
): number {
  if (status === undefined) return pendingTtl;
  switch (finalityOf(paymentService, status)) {
    case 'final':
      return finalTtl;
    case 'settled':
      return settledTtl;
    case 'pending':
      return Math.min(pendingTtlMax, Math.max(pendingTtl, unchangedForMs * pendingTtlShare));
  }
}

// MERGED HEADER (rewrite or remove):
/* The time by which the age of an answer is told: no entry lives longer because somebody sets a clock. */

/** Milliseconds since 1970. */
export type Clock = () => number;

/**
 * A clock that goes on from where it was when the machine's is set back, and follows it when it is set forward: an
 * answer may then look older than it is, never younger.
 *
 * @param wall   the machine's time
 * @param steady milliseconds on a clock that nobody sets
 */
export function createMonotonicClock(
  wall: () => number = Date.now,
  steady: () => number = () => performance.now(),
): Clock {
  let aheadMs = Number.NEGATIVE_INFINITY;
  return () => {
    aheadMs = Math.max(aheadMs, wall() - steady());
    return aheadMs + steady();
  };
}
