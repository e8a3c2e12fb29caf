/** IP addresses, and lists of addresses and networks such as those of trusted proxies. */

import { BlockList, isIP } from 'node:net';

/** Whether a text is an IP address, or a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const longest = isIP(address) === 4 ? 32 : 128;
  if (isIP(address) === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest);
}

/**
 * Compiles a list for many comparisons.
 *
 * @param networks each as `isNetwork` accepts it
 * @returns whether an address belongs to one of the networks; false for any text that is not an address
 */
export function createNetworkMatcher(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const text of networks) {
    const [address = '', bits] = text.split('/');
    list.addSubnet(address, Number(bits ?? (isIP(address) === 4 ? 32 : 128)), family(address));
  }
  return (address) => isIP(address) !== 0 && list.check(address, family(address));
}

/**
 * The parts of an address, in lower case: four numbers, or the eight groups of IPv6. An IPv4 address that is mapped to IPv6 counts
 * as IPv4.
 *
 * @returns none if the text is not an address
 */
export function addressParts(address: string): readonly string[] {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIP(plain) === 4) return plain.split('.');
  if (isIP(plain) !== 6) return [];
  const [before = '', after = ''] = new URL(`http://[${plain.split('%')[0]}]`).hostname
    .slice(1, -1)
    .split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const zeros = Array(Math.max(0, 8 - groups(before).length - groups(after).length)).fill('0');
  return [...groups(before), ...zeros, ...groups(after)];
}

const family = (address: string) => (isIP(address) === 4 ? 'ipv4' : 'ipv6');
