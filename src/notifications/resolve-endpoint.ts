/** The addresses that a webhook may be sent to. The name is resolved for each attempt, because what it leads to can change. */

import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { createNetworkMatcher } from '../config/network-list.ts';
import { hostWithoutBrackets, isLoopback } from '../config/values.ts';
import { isForbiddenAddress } from './forbidden-addresses.ts';

/** @returns all addresses of a name; none if it has none. Rejects if no server answers */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** The endpoint has no address that webhooks may be sent to. The message does not name an address. */
export class UnusableEndpoint extends Error {}

/** One of the configured networks, which may be private. */
export type IsAllowedPrivate = (address: string) => boolean;

/** @param allowPrivate `notifications.allowPrivate` */
export const createIsAllowedPrivate = (allowPrivate: readonly string[]): IsAllowedPrivate =>
  createNetworkMatcher(allowPrivate);

/**
 * Finds the addresses of an endpoint, and checks every one of them. One forbidden address is enough to refuse the endpoint:
 * otherwise its owner could choose by the order of the addresses.
 *
 * @param url allowed by the settings of its client, so an address in it is one that they name; http only with a loopback host
 * @throws UnusableEndpoint
 */
export async function resolveEndpoint(
  url: URL,
  isAllowedPrivate: IsAllowedPrivate,
  resolveName: ResolveName,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = hostWithoutBrackets(url.hostname);
  if (isIP(host) !== 0) return [host];
  if (isLoopback(host)) return loopbackAddresses; // RFC 6761 section 6.3: no server is asked for localhost
  const addresses = await resolveName(host, signal).catch((cause: unknown) => {
    throw new UnusableEndpoint('no name server answers for the name of the endpoint', { cause });
  });
  if (addresses.length === 0) throw new UnusableEndpoint('the name of the endpoint has no address');
  if (addresses.some((address) => isForbiddenAddress(address) && !isAllowedPrivate(address)))
    throw new UnusableEndpoint(
      'the name of the endpoint leads to an address that is not on the Internet; if that network is yours, add it to notifications.allowPrivate',
    );
  return addresses;
}

const loopbackAddresses = ['127.0.0.1', '::1'];

/** For one query, of which there are two for each family. Milliseconds. */
const queryTimeoutMs = 2_000;
const queryTries = 2;

/**
 * Asks the name servers of the system. Not `lookup`: it occupies a thread for each name that a server is slow to resolve, and the
 * process has four of them for all of its files and names. It ignores the hosts file.
 */
export const resolveByNameServer: ResolveName = async (name, signal) => {
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const families = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []));
    if (addresses.length > 0) return addresses;
    for (const family of families)
      if (family.status === 'rejected' && !isAbsent(family.reason)) throw family.reason;
    return [];
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};

/** The server has answered that there is no such name, or no address of this family. */
const isAbsent = (error: unknown) =>
  error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ENODATA');
