/**
 * The cached data of one payment: its status, and one response for each variant of the request. It is a single value, so
 * that one compare-and-set covers all of it.
 *
 * The generation changes whenever the payment is invalidated, another status is observed, or an authorisation has ended. A
 * response that was fetched under one generation is never stored under another: a slow read cannot bring back an older status.
 */

import { hash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { HeaderFields } from '../pis/headers.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { type CacheLimits, lacksFields } from './cache-control.ts';

export interface CachedPayment {
  /** Empty if nothing was ever stored. */
  readonly generation: string;
  /** The status of all responses, and the last one that a TPP has seen; `undefined` if it is not known. */
  readonly statusHash: string | undefined;
  /** Since when the payment is known to have this status: milliseconds since 1970. */
  readonly statusSinceMs: number;
  /** By variant (cache-key.ts). */
  readonly responses: Readonly<Record<string, CachedResponse>>;
  /** Hashes of the authorisations that are known to have ended. */
  readonly endedAuthorisations: readonly string[];
}

/** A response of the bank, as it was sent to the TPP. */
export interface CachedResponse {
  readonly headers: HeaderFields;
  readonly body: Buffer;
  /** When the bank generated it, by its `Age`: milliseconds since 1970. */
  readonly fetchedAtMs: number;
  readonly ttlMs: number;
  /** The credential that it was fetched with, as a keyed hash. */
  readonly credential: string;
  /** Fields that a request must not have to get this response (`varyOutsideKeyIn`); `undefined` if there are none. */
  readonly absentFields?: readonly string[] | undefined;
  /** The public URL in its links, if it has links of the gateway. */
  readonly publicUrl?: string | undefined;
}

/** An invalidated payment: nothing is known about it. */
export function invalidatedPayment(): CachedPayment {
  return { ...emptyPayment, generation: randomUUID() };
}

/** Lower than any age, also of a response from an instance whose clock is ahead. */
const expiredTtlMs = -1_000_000;

/** Whether a stored response counts as a read of the present status. */
export const isExpired = ({ ttlMs }: CachedResponse): boolean => ttlMs === expiredTtlMs;

/** The payment with the status that is known, and responses that are served only while the bank fails. */
export function expiredPayment(payment: CachedPayment): CachedPayment {
  const expired = Object.entries(payment.responses).map(
    ([variant, response]) => [variant, { ...response, ttlMs: expiredTtlMs }] as const,
  );
  return { ...payment, generation: randomUUID(), responses: Object.fromEntries(expired) };
}

/**
 * The payment without the responses fetched with this credential. The new generation also keeps out responses that the
 * bank is still sending.
 */
export function withoutCredential(payment: CachedPayment, credential: string): CachedPayment {
  const others = Object.entries(payment.responses).filter(
    ([, response]) => response.credential !== credential,
  );
  return { ...payment, generation: randomUUID(), responses: Object.fromEntries(others) };
}

/** Milliseconds; negative if the clock of the instance that fetched it is ahead of ours. */
export const ageMsOf = ({ fetchedAtMs }: CachedResponse, nowMs: number): number => nowMs - fetchedAtMs;

/** How much the clocks of two instances may differ; NTP keeps them closer. Milliseconds. */
const maxClockSkewMs = 250;

/** Whether a response may be served to a request with these limits without asking the bank; one from the future may not. */
function isFresh(response: CachedResponse, nowMs: number, { maxAgeMs, minFreshMs }: CacheLimits): boolean {
  const ageMs = ageMsOf(response, nowMs);
  if (ageMs < -maxClockSkewMs || ageMs > maxAgeMs) return false;
  return ageMs < response.ttlMs && ageMs + minFreshMs <= response.ttlMs;
}

/** The response of a variant that answers this request without asking the bank. */
export function freshResponse(
  { responses }: CachedPayment,
  variant: string,
  request: Pick<PisRequest, 'headers'>,
  nowMs: number,
  limits: CacheLimits,
): CachedResponse | undefined {
  const cached = responses[variant];
  if (!cached || !isFresh(cached, nowMs, limits)) return undefined;
  return cached.absentFields && !lacksFields(request, cached.absentFields) ? undefined : cached;
}

/** @param environment the name of the environment that the response came from */
export function toPisResponse(cached: CachedResponse, environment: string): PisResponse {
  const { headers, body, publicUrl } = cached;
  return { status: 200, headers, body, servedFrom: 'cache', environment, publicUrl };
}

/** Larger values are neither written nor read, so that no response of a bank fills the shared state. Characters. */
const maxLength = 64 * 1024;
/** A TPP that varies its `Accept-Language` must not make every read of the payment expensive. */
const maxResponses = 64;
/** Of one caller, who could otherwise displace the responses of others with ever new queries. */
const maxResponsesOfCaller = 8;

/** The stored value; contains only the newest responses if there are too many. */
export function serializeCachedPayment(payment: CachedPayment): string {
  const { generation, statusHash, statusSinceMs, responses, endedAuthorisations } = payment;
  const perCaller = new Map<string, number>();
  const isKept = ([, { credential }]: readonly [string, CachedResponse]) => {
    const count = (perCaller.get(credential) ?? 0) + 1;
    perCaller.set(credential, count);
    return count <= maxResponsesOfCaller;
  };
  const newest = Object.entries(responses)
    .toSorted(([, one], [, other]) => other.fetchedAtMs - one.fetchedAtMs)
    .filter(isKept)
    .slice(0, maxResponses);
  const e = newest.map(([variant, response]) => {
    const {
      headers: h,
      body,
      fetchedAtMs: f,
      ttlMs: t,
      credential: c,
      publicUrl: u,
      absentFields: n,
    } = response;
    return [variant, { h, b: body.toString('base64'), f, t, c, u, n }] as const;
  });
  const text = JSON.stringify({
    v: 1,
    g: generation,
    s: statusHash,
    a: statusSinceMs,
    e: Object.fromEntries(e),
    ...(endedAuthorisations.length > 0 && { d: endedAuthorisations }),
  });
  if (text.length <= maxLength || newest.length === 0) return text;
  const newestHalf = newest.slice(0, Math.floor(newest.length / 2));
  return serializeCachedPayment({ ...payment, responses: Object.fromEntries(newestHalf) });
}

/**
 * Parses a stored value. One that is corrupt, foreign, oversized or of a later version counts as empty, with a generation
 * of its own: its writer may have stored a newer status.
 */
export function parseCachedPayment(text: string | undefined): CachedPayment {
  if (text === undefined) return emptyPayment;
  const result = paymentShape.safeParse(text.length > maxLength ? undefined : parseJson(text));
  if (!result.success) return { ...emptyPayment, generation: hash('sha256', text, 'base64url') };
  const { g, s, a, e, d } = result.data;
  const responses = Object.entries(e).map(([variant, { h, b, f, t, c, u, n }]) => {
    const optional = { ...(u !== undefined && { publicUrl: u }), ...(n && { absentFields: n }) };
    const body = Buffer.from(b, 'base64');
    return [variant, { headers: h, body, fetchedAtMs: f, ttlMs: t, credential: c, ...optional }] as const;
  });
  return {
    generation: g,
    statusHash: s,
    statusSinceMs: a,
    responses: Object.fromEntries(responses),
    endedAuthorisations: d,
  };
}

const emptyPayment: CachedPayment = {
  generation: '',
  statusHash: undefined,
  statusSinceMs: 0,
  responses: {},
  endedAuthorisations: [],
};

const responseShape = z.object({
  h: z.array(z.tuple([z.string(), z.string()])),
  b: z.base64(),
  f: z.number(),
  t: z.number(),
  c: z.string(),
  u: z.string().optional(),
  n: z.array(z.string()).optional(),
});

/** Unknown names are ignored; a later version is a cache miss. */
const paymentShape = z.object({
  v: z.literal(1),
  g: z.string(),
  s: z.string().optional(),
  a: z.number(),
  e: z.record(z.string(), responseShape),
  d: z.array(z.string()).default([]),
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
