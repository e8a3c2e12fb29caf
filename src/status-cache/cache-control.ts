/** What requests and responses say about caching (RFC 9111), how long a status is fresh, and the clock that measures it. */

import { parseDeltaSeconds } from '../pis/delta-seconds.ts';
import { type HeaderFields, headerValue, listMembers } from '../pis/headers.ts';
import { parseHttpDate } from '../pis/http-date.ts';
import { finalityOf } from '../pis/transaction-status.ts';
import type { PisRequest, PisResponse, RoutedRequest } from '../request/messages.ts';
import { type CacheFields, credentialFields, keyFields } from './cache-fields.ts';

/**
 * How a status read uses the cache. `limited`: from the cache if the response is within the limits, otherwise like `refresh`;
 * `refresh`: not from the cache, but the response may be stored and shared; `bypass`: neither stored nor shared;
 * `unsatisfiable`: the request excludes both the cache and the bank.
 */
export type CacheMode = 'default' | 'limited' | 'refresh' | 'only-if-cached' | 'bypass' | 'unsatisfiable';

/** What a request demands of a cached response. Milliseconds. */
export interface CacheLimits {
  readonly maxAgeMs: number;
  /** How long the response must stay fresh from now on. */
  readonly minFreshMs: number;
}

export interface CacheUse {
  readonly mode: CacheMode;
  readonly limits: CacheLimits;
}

export const noLimits: CacheLimits = { maxAgeMs: Number.POSITIVE_INFINITY, minFreshMs: 0 };

const defaultUse: CacheUse = { mode: 'default', limits: noLimits };

/** For a poll, which refreshes the cache if the response in it is older. */
export const limitedUse = (maxAgeMs: number): CacheUse => ({
  mode: 'limited',
  limits: { maxAgeMs, minFreshMs: 0 },
});

/** Whether a fresh response within the limits answers the request. */
export const isCacheAllowed: Readonly<Record<CacheMode, boolean>> = {
  default: true,
  limited: true,
  'only-if-cached': true,
  refresh: false,
  bypass: false,
  unsatisfiable: false,
};

/** RFC 9111 section 5.2.1. Arguments that are not numbers are ignored, and so is `max-stale`. */
export function cacheUseOf(
  { headers }: Pick<PisRequest, 'headers'>,
  { hasCacheControl, bypasses }: CacheFields,
): CacheUse {
  if (!hasCacheControl && !bypasses) return defaultUse;
  const directives = directivesIn(headers);
  const limits = limitsIn(directives);
  return { mode: modeOf(directives, limits, bypasses), limits };
}

function limitsIn(directives: Directives): CacheLimits {
  const maxAgeMs = parseDeltaSeconds(directives.get('max-age'));
  const minFreshMs = parseDeltaSeconds(directives.get('min-fresh'));
  if (maxAgeMs === undefined && minFreshMs === undefined) return noLimits;
  return { maxAgeMs: maxAgeMs ?? noLimits.maxAgeMs, minFreshMs: minFreshMs ?? noLimits.minFreshMs };
}

function modeOf(directives: Directives, limits: CacheLimits, bypasses: boolean): CacheMode {
  const refusesCache = directives.has('no-cache') || limits.maxAgeMs === 0;
  if (directives.has('only-if-cached')) return refusesCache || bypasses ? 'unsatisfiable' : 'only-if-cached';
  if (bypasses || directives.has('no-store')) return 'bypass';
  if (refusesCache) return 'refresh';
  return limits.maxAgeMs === noLimits.maxAgeMs && limits.minFreshMs === 0 ? 'default' : 'limited';
}

/**
 * Whether a response may be stored for equal requests (RFC 9111 section 3). A `private` one may if the request had
 * credentials: they are part of the key.
 */
export function isStorable(request: RoutedRequest, { status, headers }: PisResponse): boolean {
  if (status !== 200 || headerValue(headers, 'set-cookie') !== undefined) return false;
  const directives = directivesIn(headers);
  if (directives.has('no-store') || directives.has('no-cache')) return false;
  const { callerHeaders } = request.environment;
  const hasCredentials = [...credentialFields, ...callerHeaders].some(
    (name) => headerValue(request.headers, name) !== undefined,
  );
  if (directives.has('private') && !hasCredentials) return false;
  return lacksFields(request, varyOutsideKeyIn(headers, callerHeaders));
}

/**
 * The fields of `Vary` that are not part of the cache key, in lower case, or `*`. The response answers all requests that have none of
 * these fields: they do not differ in them (RFC 9111 section 4.1). It is not stored for a request with one of them.
 */
export const varyOutsideKeyIn = (
  headers: HeaderFields,
  callerHeaders: readonly string[],
): readonly string[] =>
  listMembers(headers, 'vary').filter((name) => !keyFields.has(name) && !callerHeaders.includes(name));

/** Whether the request has none of these fields; false for `*`. */
export const lacksFields = ({ headers }: Pick<PisRequest, 'headers'>, names: readonly string[]): boolean =>
  names.every((name) => name !== '*' && headerValue(headers, name) === undefined);

/** Whether a response that another read has led to answers this request as well, by its `Vary`. Error responses are shared with all reads, whatever their `Vary`. */
export const isSelectedFor = (request: RoutedRequest, { status, headers }: PisResponse): boolean =>
  status !== 200 || lacksFields(request, varyOutsideKeyIn(headers, request.environment.callerHeaders));

/** Whether the bank forbids serving the response stale (RFC 9111 section 4.2.4). */
export function forbidsStale(headers: HeaderFields): boolean {
  const directives = directivesIn(headers);
  return ['must-revalidate', 'proxy-revalidate', 's-maxage'].some((name) => directives.has(name));
}

/**
 * How long the bank allows a response to be fresh, in milliseconds; 0 if its fields are malformed (RFC 9111 sections
 * 4.2.1 and 5.3).
 *
 * @param nowMs milliseconds since 1970
 */
export function freshnessLifetimeMs(headers: HeaderFields, nowMs: number): number {
  const directives = directivesIn(headers);
  const maxAges = ['max-age', 's-maxage'].filter((name) => directives.has(name));
  if (maxAges.length > 0)
    return Math.min(...maxAges.map((name) => parseDeltaSeconds(directives.get(name)) ?? 0));
  const expires = headerValue(headers, 'expires');
  if (expires === undefined) return Number.POSITIVE_INFINITY;
  const sentAtMs = parseHttpDate(headerValue(headers, 'date') ?? '', nowMs) ?? nowMs;
  return Math.max(0, (parseHttpDate(expires, nowMs) ?? sentAtMs) - sentAtMs);
}

/** In milliseconds. */
export interface FreshnessSettings {
  readonly finalTtl: number;
  readonly settledTtl: number;
  readonly pendingTtl: number;
  readonly pendingTtlMax: number;
}

/** A status that has not changed for ten seconds is unlikely to change within the next one. */
const pendingTtlShare = 0.1;

/**
 * How long a status is fresh, by its finality and by how long it has not changed.
 *
 * @param status         transaction status, or `undefined` if the response names none: then it may change at any time
 * @param unchangedForMs how long the payment is known to have this status
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

/** Milliseconds since 1970. */
export type Clock = () => number;

/**
 * A clock that continues when the machine's clock is set back, and follows it when it is set forward: a cached response
 * may then appear older than it is, never younger.
 *
 * @param wallClock   the machine's time
 * @param steadyClock milliseconds of a clock that cannot be set
 */
export function createMonotonicClock(
  wallClock: () => number = Date.now,
  steadyClock: () => number = () => performance.now(),
): Clock {
  let offsetMs = Number.NEGATIVE_INFINITY;
  return () => {
    offsetMs = Math.max(offsetMs, wallClock() - steadyClock());
    return offsetMs + steadyClock();
  };
}

/** The directives of `Cache-Control` with their arguments, the first of each name. Accepts `;` as a separator as well. */
function directivesIn(headers: HeaderFields): Directives {
  const members = listMembers(headers, 'cache-control');
  if (members.length === 0) return noDirectives; // the usual case
  const pairs = members
    .flatMap((member) => member.split(';'))
    .map((member): [string, string] => {
      const [name = '', argument = ''] = member.split('=', 2);
      return [name.trim(), argument.trim().replaceAll('"', '')];
    });
  return new Map(pairs.toReversed());
}

type Directives = ReadonlyMap<string, string>;

const noDirectives: Directives = new Map();
