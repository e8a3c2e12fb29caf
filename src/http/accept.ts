/** Negotiates the media type of a response by the `Accept` field (RFC 9110 section 12.5.1). Only this file knows negotiator. */

import Negotiator from 'negotiator';

/**
 * The offered media type that `Accept` ranks highest, or names first at the same rank.
 *
 * @returns `undefined` if it accepts none of them
 */
export const preferredMediaType = (accept: string, offered: readonly string[]): string | undefined =>
  new Negotiator({ headers: { accept: withoutParameters(accept) } }).mediaType([...offered]);

/** Removes all parameters but `q`. Our formats have no parameters, so negotiator would not match a range that has one. */
const withoutParameters = (accept: string) =>
  accept.replace(/;\s*(?!q\s*=)[^\s=;,"]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi, '');

const eventStream = 'text/event-stream';

/** Whether server-sent events are preferred to the formats of a bank. */
export function prefersEvents(accept: string | undefined): boolean {
  if (!accept?.toLowerCase().includes(eventStream)) return false;
  return preferredMediaType(accept, ['application/json', 'application/xml', eventStream]) === eventStream;
}
