/** The plain values that several sections share: hosts, ports, files, hashes, web addresses. */

import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

/** A name of ours that may stand in headers, metrics and keys. */
export const plainName = () => z.string({ error: aName }).regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, aName);

const aName = 'expected a name of at most 64 letters, digits, ".", "_" and "-"';

/** The name of an environment. */
export const environmentName = () =>
  z.string({ error: environmentNameExpected }).regex(environmentNames, environmentNameExpected);

/** What an environment may be called: it stands in headers, addresses and the names of variables. */
export const environmentNames = /^(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** The same in words. */
export const environmentNameExpected =
  'expected an environment name of at most 64 a-z, 0-9 and single "-" between them';

/** An address to listen on. */
export const host = (fallback: string) =>
  z
    .string({ error: aHost })
    .refine((text) => isIP(text) !== 0 || hostNames.test(text), aHost)
    .default(fallback);

const aHost = 'expected an IP address or a host name';

/** A port to listen on; 0 lets the system choose one. */
export const port = (fallback: number) => z.int().min(0).max(65_535).default(fallback);

/** A whole number that is at least one. */
export const count = (fallback: number) => z.int().min(1).max(1_000_000).default(fallback);

/** The path of a file, as the process sees it; whether it can be read shows when it is read. */
export const file = () =>
  z.string({ error: aFile }).refine((text) => text.trim() !== '' && !text.includes('\0'), aFile);

const aFile = 'expected the path of a file';

/** A switch that is either on or off. */
export const flag = (fallback: boolean) => z.boolean().default(fallback);

/** SHA-256 of a secret; lower-case hex inside. The message never quotes what was written: it may be the secret itself. */
export const secretHash = () =>
  hash('the SHA-256 of the secret as 64 hex digits (printf %s "$SECRET" | sha256sum)');

/** SHA-256 fingerprint of a certificate, as openssl prints it; lower-case hex without colons inside. */
export const fingerprint = () =>
  hash('a SHA-256 fingerprint as 64 hex digits (openssl x509 -noout -fingerprint -sha256)');

/** The address of a web service: scheme, host and path, and nothing else; without a slash at its end inside. */
export const webAddress = () => z.string({ error: `expected ${anAddress}` }).transform(addressOf);

/** Is this host reachable from this machine only? Takes what `URL.hostname` gives, too. */
export function isLoopback(name: string): boolean {
  const bare = hostWithoutBrackets(name).toLowerCase();
  const family = isIP(bare);
  if (family === 0) return bare === 'localhost' || bare.endsWith('.localhost');
  return loopback.check(bare, family === 4 ? 'ipv4' : 'ipv6');
}

const hostNames =
  /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*$/;

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const hash = (expected: string) =>
  z
    .string({ error: `expected ${expected}` })
    .transform((text) => text.replaceAll(':', '').toLowerCase())
    .refine((hex) => /^[0-9a-f]{64}$/.test(hex), `expected ${expected}`)
    .refine(
      (hex) => !emptySecretHashes.has(hex),
      'this is the hash of an empty secret; hash the secret itself',
    );

/** What `echo | sha256sum` and `printf '' | sha256sum` print: the hash of a secret that was never set. */
const emptySecretHashes = new Set(['', '\n'].map((text) => createHash('sha256').update(text).digest('hex')));

const anAddress = 'an address such as https://api.bank.example/psd2';

function addressOf(text: string, context: z.RefinementCtx): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const problem = url ? problemOf(url, text) : `expected ${anAddress}`;
  if (url && !problem) return url.origin + url.pathname.replace(/\/$/, '');
  context.addIssue({ code: 'custom', message: problem ?? '' });
  return z.NEVER;
}

function problemOf(url: URL, text: string): string | undefined {
  if (!['http:', 'https:'].includes(url.protocol))
    return 'expected an address that begins with https:// or http://';
  if (url.username || url.password)
    return 'an address must not hold credentials; remove what stands before the @';
  if (text.includes('?')) return 'an address must not have a query; remove the "?" and what follows';
  if (text.includes('#')) return 'an address must not have a fragment; remove the "#" and what follows';
  if (!plainPath.test(url.pathname))
    return 'the path of an address may hold letters, digits, ".", "_", "~" and "-" between single slashes';
  return undefined;
}

const plainPath = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;

/** A host as sockets and address lists take it: URLs put an IPv6 address in brackets (RFC 3986 section 3.2.2). */
export const hostWithoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '');
