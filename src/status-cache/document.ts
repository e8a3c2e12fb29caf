/**
 * What is kept of one payment: its status, and one answer for each kind of request. All in one value, so that one
 * compare-and-set decides over all of it.
 *
 * The generation changes whenever the payment is forgotten or another status is seen. An answer fetched under one
 * generation is never kept under another: a slow read cannot bring an older status back.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { HeaderFields } from '../pis/headers.ts';

/** An answer of the bank, as it was sent on. */
export interface Entry {
  readonly headers: HeaderFields;
  /** The bytes, in base64. */
  readonly body: string;
  /** When the bank had said so: milliseconds since 1970, its own `Age` taken off. */
  readonly fetchedAt: number;
  readonly ttlMs: number;
  /** Which credential it was fetched with, as a keyed hash. */
  readonly credential: string;
}

export interface StatusDocument {
  /** Empty if nothing was ever kept. */
  readonly generation: string;
  /** What all entries agree on; `undefined` after the payment was forgotten. */
  readonly standing: string | undefined;
  /** Since when the payment is known to stand there: milliseconds since 1970. */
  readonly since: number;
  /** By variant: everything in a request that an answer may depend on. */
  readonly entries: Readonly<Record<string, Entry>>;
}

const entryShape = z.object({
  h: z.array(z.tuple([z.string(), z.string()])),
  b: z.base64(),
  f: z.number(),
  t: z.number(),
  c: z.string(),
});

/** Readers take every version up to their own and pass over names they do not know; a later version is a miss to them. */
const documentShape = z.object({
  v: z.literal(1),
  g: z.string(),
  s: z.string().optional(),
  a: z.number(),
  e: z.record(z.string(), entryShape),
});

/** More than that is not kept, and what is larger is not ours: characters. */
const maxLength = 256 * 1024;

export const nothing: StatusDocument = { generation: '', standing: undefined, since: 0, entries: {} };

/** A payment of which nothing is known any more, since now. */
export function forgotten(): StatusDocument {
  return { ...nothing, generation: randomUUID() };
}

/** The document with one answer more; a new generation without the others, if they stand elsewhere. */
export function withEntry(
  document: StatusDocument,
  variant: string,
  { standing, entry }: { readonly standing: string; readonly entry: Entry },
): StatusDocument {
  if (document.standing === standing)
    return { ...document, entries: { ...document.entries, [variant]: entry } };
  return { generation: randomUUID(), standing, since: entry.fetchedAt, entries: { [variant]: entry } };
}

/** The document without what was fetched with this credential. */
export function withoutCredential(document: StatusDocument, credential: string): StatusDocument {
  const rest = Object.entries(document.entries).filter(([, entry]) => entry.credential !== credential);
  return { ...document, entries: Object.fromEntries(rest) };
}

/** As it is stored; `undefined` if it is too large to be. */
export function written({ generation, standing, since, entries }: StatusDocument): string | undefined {
  const e = Object.fromEntries(
    Object.entries(entries).map(([variant, { headers, body, fetchedAt, ttlMs, credential }]) => {
      return [variant, { h: headers, b: body, f: fetchedAt, t: ttlMs, c: credential }];
    }),
  );
  const text = JSON.stringify({ v: 1, g: generation, s: standing, a: since, e });
  return text.length > maxLength ? undefined : text;
}

/** What a stored value says; nothing, if it is corrupt, foreign, oversized, or of a later version. */
export function parsed(text: string | undefined): StatusDocument {
  if (text === undefined || text.length > maxLength) return nothing;
  const result = documentShape.safeParse(jsonOf(text));
  if (!result.success) return nothing;
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
