/** The network that a request comes from: precise enough to find a misbehaving system, too coarse to identify a person. */

import { addressParts, createNetworkMatcher } from '../config/network-list.ts';
import { type HeaderFields, headerValues } from '../pis/headers.ts';

/** @param peer the remote address of the connection; `undefined` once the connection is closed */
export type NetworkOf = (peer: string | undefined, fields: HeaderFields) => string | undefined;

/**
 * Reads `X-Forwarded-For` as far as it was written by trusted proxies.
 *
 * Each proxy appends the address that it was called from, so the list is read from its end: the entries before the
 * first address that is not a trusted proxy may be forged.
 *
 * @param trusted addresses, and networks such as `10.0.0.0/8`
 */
export function createNetworkOf(trusted: readonly string[]): NetworkOf {
  const isProxy = createNetworkMatcher(trusted);
  return (peer, fields) => {
    const forwarded = headerValues(fields, 'x-forwarded-for').flatMap((value) => value.split(','));
    const hops = [...forwarded.map((hop) => hop.trim()), peer ?? ''];
    return networkOf(hops.findLast((address, index) => index === 0 || !isProxy(address)) ?? '');
  };
}

/** The first 24 bits of an IPv4 address, or the first 48 bits of an IPv6 address; `undefined` for any other text. */
function networkOf(address: string): string | undefined {
  const parts = addressParts(address);
  if (parts.length === 4) return `${parts.slice(0, 3).join('.')}.0/24`;
  return parts.length === 8 ? `${parts.slice(0, 3).join(':')}::/48` : undefined;
}
