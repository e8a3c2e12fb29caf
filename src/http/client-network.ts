/** The network that a request comes from: precise enough to find a misbehaving system, too coarse to identify a person. */

import { BlockList, isIP } from 'node:net';
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
  const proxies = new BlockList();
  for (const text of trusted) {
    const [address = '', bits] = text.split('/');
    proxies.addSubnet(address, Number(bits ?? (isIP(address) === 4 ? 32 : 128)), family(address));
  }
  const isProxy = (address: string) => isIP(address) !== 0 && proxies.check(address, family(address));

  return (peer, fields) => {
    const forwarded = headerValues(fields, 'x-forwarded-for').flatMap((value) => value.split(','));
    const hops = [...forwarded.map((hop) => hop.trim()), peer ?? ''];
    return networkOf(hops.findLast((address, index) => index === 0 || !isProxy(address)) ?? '');
  };
}

const family = (address: string) => (isIP(address) === 4 ? 'ipv4' : 'ipv6');

/** The first 24 bits of an IPv4 address, or the first 48 bits of an IPv6 address; `undefined` for any other text. */
function networkOf(address: string): string | undefined {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIP(plain) === 4) return `${plain.split('.').slice(0, 3).join('.')}.0/24`;
  if (isIP(plain) !== 6) return undefined;
  const [before = '', after = ''] = new URL(`http://[${plain.split('%')[0]}]`).hostname
    .slice(1, -1)
    .split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const zeros = Array(8 - groups(before).length - groups(after).length).fill('0');
  return `${[...groups(before), ...zeros, ...groups(after)].slice(0, 3).join(':')}::/48`;
}
