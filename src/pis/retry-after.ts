/** The field `Retry-After` of a response. */

import { type HeaderFields, headerValue } from './headers.ts';

/**
 * The pause that `Retry-After` asks for (RFC 9110 section 10.2.3): seconds, or a date.
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, never below 0; `undefined` if the field is missing or malformed
 */
export function retryAfterMs(headers: HeaderFields, nowMs: number): number | undefined {
  const value = headerValue(headers, 'retry-after')?.trim();
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const dateMs = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value)
    ? Date.parse(value)
    : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
