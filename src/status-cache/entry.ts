/** One kept answer of the bank. */

import type { PisResponse } from '../flow/messages.ts';
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

/** Milliseconds; negative if the clock of the instance that fetched it goes ahead of ours. */
export const ageMsOf = ({ fetchedAt }: Entry, nowMs: number): number => nowMs - fetchedAt;

/** How much the clocks of two instances may differ, if somebody looks after them (NTP keeps them closer). Milliseconds. */
const mostSkewMs = 250;

/** Whether it may be served without asking the bank; one from the future is not believed. */
export function isFresh(entry: Entry, nowMs: number): boolean {
  const ageMs = ageMsOf(entry, nowMs);
  return ageMs >= -mostSkewMs && ageMs < entry.ttlMs;
}

/** @param environment that the bank was asked in */
export function responseOf({ headers, body }: Entry, environment: string): PisResponse {
  return { status: 200, headers, body: Buffer.from(body, 'base64'), servedFrom: 'cache', environment };
}
