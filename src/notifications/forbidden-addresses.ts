/** Addresses that webhooks must not be sent to, because they may belong to the operator's own network. */

import { createNetworkMatcher } from '../config/network-list.ts';

/** Special-purpose addresses that are not globally reachable (IANA), and all multicast and reserved ones. */
const isForbiddenV4 = createNetworkMatcher([
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared between a provider and its customers
  '127.0.0.0/8', // loopback
  '168.63.129.16', // the platform services of a cloud, for its virtual machines only (Azure)
  '169.254.0.0/16', // link-local, with the metadata services of clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // former 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
]);

/**
 * Global unicast addresses; all others are forbidden, among them unique local, link-local and multicast addresses, and those that
 * contain an IPv4 address: mapped (`::ffff:0:0/96`) and NAT64 (`64:ff9b::/96`, `64:ff9b:1::/48`).
 */
const isGlobalUnicast = createNetworkMatcher(['2000::/3']);

const isForbiddenUnicast = createNetworkMatcher([
  '2001::/23', // protocol assignments, among them Teredo, which contains an IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which contains an IPv4 address
  '3fff::/20', // documentation
]);

const isIPv4 = createNetworkMatcher(['0.0.0.0/0']);

/**
 * Whether an address is private, link-local, loopback, multicast or otherwise not on the Internet.
 *
 * @param address a text that is not an address is forbidden
 */
export function isForbiddenAddress(address: string): boolean {
  if (address.includes('%')) return true; // of one interface
  if (address.includes(':')) return !isGlobalUnicast(address) || isForbiddenUnicast(address);
  return !isIPv4(address) || isForbiddenV4(address);
}
