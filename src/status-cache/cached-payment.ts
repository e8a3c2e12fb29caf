/**
 * What is kept of one payment: its status, and one answer for each kind of request. All in one value, so that one
 * compare-and-set decides over all of it.
 *
 * The generation changes whenever the payment is forgotten or another status is seen. An answer fetched under one
 * generation is never kept under another: a slow read cannot bring an older status back.
 */

import { hash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { HeaderFields } from '../pis/headers.ts';
import type { PisResponse } from '../request/messages.ts';

export interface CachedPayment {
  /** Empty if nothing was ever kept. */
  readonly generation: string;
  /** What all entries agree on; `undefined` after the payment was forgotten. */
  readonly standing: string | undefined;
  /** Since when the payment is known to stand there: milliseconds since 1970. */
  readonly since: number;
  /** By variant: everything in a request that an answer may depend on. */
  readonly entries: Readonly<Record<string, CachedResponse>>;
}

/** What an answer of the bank tells of a payment. */
export interface Observation {
  /** Where the payment stands: equal for equal statuses. */
  readonly standing: string;
  /** Milliseconds since 1970. */
  readonly seenAt: number;
  /** The answer itself by its variant, if it may be kept; else empty. */
  readonly entries: Readonly<Record<string, CachedResponse>>;
}

const responseShape = z.object({
  h: z.array(z.tuple([z.string(), z.string()])),
  b: z.base64(),
  f: z.number(),
  t: z.number(),
  c: z.string(),
});

/** Readers take every version up to their own and pass over names they do not know; a later version is a miss to them. */
const paymentShape = z.object({
  v: z.literal(1),
  g: z.string(),
  s: z.string().optional(),
  a: z.number(),
  e: z.record(z.string(), responseShape),
});

/** More than that is not kept, and what is larger is not ours: characters. */
const maxLength = 256 * 1024;
/** Whoever sends another `Accept-Language` each time must not make every read of the payment dear. */
const maxResponses = 64;

const emptyPayment: CachedPayment = { generation: '', standing: undefined, since: 0, entries: {} };

/** A payment of which nothing is known any more, since now. */
export function invalidatedPayment(): CachedPayment {
  return { ...emptyPayment, generation: randomUUID() };
}

/** The document after a sighting: a new generation without the earlier entries, if the payment stands elsewhere now. */
export function withObservation(document: CachedPayment, sighting: Observation): CachedPayment {
  const { standing, seenAt, entries } = sighting;
  if (document.standing === standing) return { ...document, entries: { ...document.entries, ...entries } };
  return { generation: randomUUID(), standing, since: seenAt, entries };
}

/** The document without what was fetched with this credential, or is on its way: that will come under an old generation. */
export function withoutCredential(document: CachedPayment, credential: string): CachedPayment {
  const rest = Object.entries(document.entries).filter(([, entry]) => entry.credential !== credential);
  return { ...document, generation: randomUUID(), entries: Object.fromEntries(rest) };
}

/** As it is stored: of too many entries, the newer ones. */
export function serializeCachedPayment(document: CachedPayment): string {
  const { generation, standing, since, entries } = document;
  const newest = Object.entries(entries)
    .toSorted(([, one], [, other]) => other.fetchedAt - one.fetchedAt)
    .slice(0, maxResponses);
  const e = newest.map(([variant, { headers, body, fetchedAt, ttlMs, credential }]) => {
    return [variant, { h: headers, b: body, f: fetchedAt, t: ttlMs, c: credential }] as const;
  });
  const text = JSON.stringify({ v: 1, g: generation, s: standing, a: since, e: Object.fromEntries(e) });
  if (text.length <= maxLength || newest.length === 0) return text;
  const half = newest.slice(0, Math.floor(newest.length / 2));
  return serializeCachedPayment({ ...document, entries: Object.fromEntries(half) });
}

/**
 * What a stored value says; nothing, if it is corrupt, foreign, oversized, or of a later version. Each of those is a
 * generation of its own: whoever writes it may be keeping a newer status.
 */
export function parseCachedPayment(text: string | undefined): CachedPayment {
  if (text === undefined) return emptyPayment;
  const result = paymentShape.safeParse(text.length > maxLength ? undefined : jsonOf(text));
  if (!result.success) return { ...emptyPayment, generation: hash('sha256', text, 'base64url') };
  const { g, s, a, e } = result.data;
  const entries = Object.entries(e).map(([variant, { h, b, f, t, c }]) => {
    return [variant, { headers: h, body: b, fetchedAt: f, ttlMs: t, credential: c }] as const;
  });
  return { generation: g, standing: s, since: a, entries: Object.fromEntries(entries) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// MERGED HEADER (rewrite or remove):
/* One kept answer of the bank. */

/** An answer of the bank, as it was sent on. */
export interface CachedResponse {
  readonly headers: HeaderFields;
  /** The bytes, in base64. */
  readonly body: string;
  /** When the bank had said so: milliseconds since 1970, its own `Age` taken off. */
  readonly fetchedAt: number;
  readonly ttlMs: number;
  /** Which credential it was fetched with, as a keyed hash. */
  readonly credential: string;
}

/** Milliseconds; negative if the clock of the instance that fetched it goes ahead of ours. */
export const ageMsOf = ({ fetchedAt }: CachedResponse, nowMs: number): number => nowMs - fetchedAt;

/** How much the clocks of two instances may differ, if somebody looks after them (NTP keeps them closer). Milliseconds. */
const maxClockSkewMs = 250;

/** Whether it may be served without asking the bank; one from the future is not believed. */
export function isFresh(entry: CachedResponse, nowMs: number): boolean {
  const ageMs = ageMsOf(entry, nowMs);
  return ageMs >= -maxClockSkewMs && ageMs < entry.ttlMs;
}

/** @param environment that the bank was asked in */
export function toPisResponse({ headers, body }: CachedResponse, environment: string): PisResponse {
  return { status: 200, headers, body: Buffer.from(body, 'base64'), servedFrom: 'cache', environment };
}
