/** How long the bank asks to be left alone. */

import { type HeaderFields, headerValue } from '../../pis/headers.ts';

/**
 * The pause that `Retry-After` asks for (RFC 9110 section 10.2.3): seconds, or a date.
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, never below 0; `undefined` if there is none, or none that can be understood
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
