/** Numbers of seconds in header fields (RFC 9111 section 1.2.2). */

import { type HeaderFields, listMembers } from './headers.ts';

/** @returns milliseconds; too large a number counts as 2^31 seconds; `undefined` if the text is no number of seconds */
export function parseDeltaSeconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Math.min(Number(text), 2 ** 31) * 1_000 : undefined;
}

/**
 * The age of a response on arrival, by the first member of its `Age` field, in milliseconds; 0 if that is not a number (RFC
 * 9111 section 5.1).
 */
export function initialAgeMs(headers: HeaderFields): number {
  return parseDeltaSeconds(listMembers(headers, 'age')[0]) ?? 0;
}
