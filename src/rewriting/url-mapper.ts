/** Addresses at the bank, and those under which a TPP reaches the same thing through the gateway. */

import { prefixOf } from '../pis/operations.ts';
import type { RoutedRequest } from '../request/messages.ts';

/** Gives the public address for one of the bank's, or `undefined` if the bank's must stay. Never throws. */
export type ToPublicUrl = (address: string) => string | undefined;

/** The bank's side of one exchange: against what its addresses are resolved. */
type Exchange = Pick<RoutedRequest, 'environment' | 'operation'>;

/**
 * Builds the translation of one installation; each answer has its own, for relative addresses depend on
 * the URL that the request had at the bank (RFC 3986 section 5.1.3).
 *
 * An address is translated only if it points into the bank's API: same origin, and a path below
 * `<basePath>/<segment>/v1/`. Banks leave out a part of that in relative addresses (`/v1/payments/1` in the
 * examples of 1.3.6), so those may also begin with `/<segment>/v1/` or `/v1/`. Query and fragment are kept.
 */
export function createUrlMapper(publicUrl: string, segment: string): (exchange: Exchange) => ToPublicUrl {
  const prefix = prefixOf(segment);
  const publicPrefix = `${publicUrl.replace(/\/+$/, '')}${prefix}/`;

  return ({ environment: { origin, basePath }, operation }) => {
    const askedUrl = `${origin}${basePath}${operation.path}`;
    const complete = `${origin}${basePath}${prefix}/`;
    const abridged = [`${origin}${prefix}/`, `${origin}/v1/`];

    return (address) => {
      if (beyondRfc3986.test(address)) return undefined;
      const prefixes = prefixesFor(address, complete, abridged);
      // The parser lowers the host, drops a default port and resolves dot segments, `%2e%2e` included. What
      // it gives is compared from its first character, so that neither a foreign host nor user information
      // (`https://api.bank.example@evil.example/`) can pass for the bank's origin.
      const href = URL.parse(address, askedUrl)?.href ?? '';
      const found = prefixes.find((candidate) => href.startsWith(candidate));
      return found && `${publicPrefix}${href.slice(found.length)}`;
    };
  };
}

/** What the URL parser mends silently and other parsers read differently: white space, controls, backslashes. */
const beyondRfc3986 = /[\s\\\p{Cc}]/u;
const withAuthority = /^(?:https?:)?\/\/[^/?#]/i;
const withoutAuthority = /^(?![a-z][a-z0-9+.-]*:|\/\/)./i;

function prefixesFor(address: string, complete: string, abridged: readonly string[]): readonly string[] {
  if (withAuthority.test(address)) return [complete];
  if (withoutAuthority.test(address)) return [complete, ...abridged];
  return [];
}
