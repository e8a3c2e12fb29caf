/** The URL that a TPP wants notifications at: which texts are valid, and whether the configuration allows them. */

import { isLoopback } from '../config/values.ts';

/** Longer URLs are refused: the URL is stored with each subscription. */
const maxLength = 2_048;

/** Printable ASCII without the characters that parsers treat differently (RFC 3986 section 2; a backslash is no separator). */
const plainText = /^[\x21-\x7e]+$/;
const ambiguous = /[\\"<>^`{|}]/;

/**
 * A part of a path that a server behind the endpoint may resolve to a path outside of the allowed one: a separator or dot that is
 * encoded, once or several times, or a dot segment with parameters, which some servers remove.
 */
const disguisedSegment = /%(?:25)*(?:2e|2f|5c|00)|(?:^|\/)\.{1,2};/i;

/** Without an authority, parsers take the first segment of the path for it (`https:///host`). */
const beginning = /^https?:\/\/[^/]/i;

/**
 * Parses the value of `TPP-Notification-URI`: https, or http on loopback; without user name, password or fragment.
 *
 * @returns the URL in its normal form; `undefined` if it is not acceptable
 */
export function parseNotificationUrl(text: string): URL | undefined {
  if (text.length > maxLength || !plainText.test(text) || ambiguous.test(text)) return undefined;
  if (text.includes('#') || !beginning.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isProtected = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
  const authority = /^[^/]*\/\/([^/?]*)/.exec(text)?.[1] ?? '';
  if (!isProtected || authority.includes('@') || disguisedSegment.test(url.pathname)) return undefined;
  return url;
}

/**
 * Whether one of the configured URLs has the same origin, and a path that consists of the first segments of this one.
 * `https://tpp.example/payments` allows `/payments` and `/payments/42`, but not `/payments-of-others`.
 *
 * @param allowed scheme, host and path without a trailing slash
 */
export const isAllowedUrl = (url: URL, allowed: readonly string[]): boolean =>
  allowed.some((text) => {
    const { origin, pathname } = new URL(text);
    const path = pathname.replace(/\/$/, '');
    return url.origin === origin && (url.pathname === path || url.pathname.startsWith(`${path}/`));
  });
