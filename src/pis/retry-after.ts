/** The field `Retry-After` of a response. */

import { type HeaderFields, headerValue } from './headers.ts';
import { parseHttpDate } from './http-date.ts';

/**
 * The pause that `Retry-After` asks for (RFC 9110 section 10.2.3): seconds, or a date in any of the three formats. Some servers send
 * decimals, which are rounded up.
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, never below 0; `undefined` if the field is missing or malformed
 */
export function retryAfterMs(headers: HeaderFields, nowMs: number): number | undefined {
  const value = headerValue(headers, 'retry-after')?.trim();
  if (value === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(value)) return Math.ceil(Number(value)) * 1000;
  const dateMs = parseHttpDate(value, nowMs);
  return dateMs === undefined ? undefined : Math.max(0, dateMs - nowMs);
}
