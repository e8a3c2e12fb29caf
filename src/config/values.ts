/** Schemas of values that several sections share: names, hosts, ports, files, hashes, web addresses. */

import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

/** A name that is safe in headers, metrics and keys. */
export const plainName = () =>
  z.string({ error: unlessNumber(plainNameExpected) }).regex(plainNames, plainNameExpected);

const plainNames = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const plainNameExpected =
  'expected a name of at most 64 letters, digits, ".", "_" and "-", beginning with a letter or digit';

export const environmentName = () =>
  z.string({ error: unlessNumber(environmentNameExpected) }).regex(environmentNames, environmentNameExpected);

/** Names of environments are part of headers, URLs and the names of environment variables. */
export const environmentNames = /^(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

export const environmentNameExpected =
  'expected an environment name: at most 64 characters a-z and 0-9, separated by single hyphens';

/** The message for a value that is not a string. YAML parses names of digits as numbers, without their leading zeros. */
export const unlessNumber = (expected: string) => (issue: { readonly input?: unknown }) =>
  typeof issue.input === 'number'
    ? `${expected}; without quotes, it is a number: write it in quotes`
    : expected;

export const host = (fallback: string) =>
  z.string({ error: hostExpected }).refine(isHost, hostExpected).default(fallback);

const hostExpected = 'expected an IP address or a host name';

/** A DNS name without a port, in lower case. */
export const hostName = () =>
  z
    .string({ error: hostNameExpected })
    .refine((text) => isIP(text) === 0 && isHost(text), hostNameExpected)
    .toLowerCase();

const hostNameExpected = 'expected a host name without a port, such as penstock-operators.payments.svc';

/** URLs refuse some names of digits only, such as `256.1.1.1`, because they read them as addresses. */
const isHost = (text: string) => isIP(text) !== 0 || (hostNames.test(text) && URL.canParse(`http://${text}`));

/** 0 lets the system choose a port. */
export const port = (fallback: number) => z.int().min(0).max(65_535).default(fallback);

export const count = (fallback: number) => z.int().min(1).max(1_000_000).default(fallback);

/** The path of a file. Does not check whether the file can be read. */
export const file = () =>
  z
    .string({ error: fileExpected })
    .refine((text) => text.trim() !== '' && !text.includes('\0'), fileExpected)
    .refine((text) => !text.includes('\n'), 'expected the path of a file, not its content');

const fileExpected = 'expected the path of a file';

/**
 * A setting of an environment that overrides a global one. It has no default of its own: otherwise every environment would
 * override the global value with the default.
 */
export const overriding = <Inner extends z.ZodType>(
  field: z.ZodDefault<Inner> | z.ZodPrefault<Inner>,
  section: string,
) =>
  field
    .unwrap()
    .optional()
    .meta({ defaultText: `as in ${section}` })
    .describe(field.description ?? '');

export const flag = (fallback: boolean) =>
  z
    .boolean({
      error: ({ input }) =>
        /^(y|yes|n|no|on|off)$/i.test(String(input))
          ? 'expected true or false, not yes, no, on or off'
          : undefined,
    })
    .default(fallback);

/** SHA-256 of a secret, in lower-case hex. The error message does not quote the value: it may be the secret itself. */
export const secretHash = () =>
  hash('the SHA-256 of the secret as 64 hex digits (printf %s "$SECRET" | sha256sum)');

/** SHA-256 fingerprint of a certificate as openssl prints it; parsed to lower-case hex without colons. */
export const fingerprint = () =>
  hash('a SHA-256 fingerprint as 64 hex digits (openssl x509 -noout -fingerprint -sha256)');

/** The lower-case hex digits of a SHA-256 fingerprint, with or without colons; `undefined` if the text is something else. */
export function fingerprintDigits(text: string): string | undefined {
  const digits = text.replaceAll(':', '').toLowerCase();
  return /^[0-9a-f]{64}$/.test(digits) ? digits : undefined;
}

/** The issuer of an OpenID Connect provider: a URL, kept as it is written because it is compared as text. */
export const issuer = () =>
  z.string({ error: issuerExpected }).superRefine((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const problem = url ? issuerProblem(url, text) : issuerExpected;
    if (problem) context.addIssue({ code: 'custom', message: problem });
  });

/** A URL with only scheme, host and path; parsed without a trailing slash. */
export const webAddress = () => z.string({ error: addressExpected }).transform(addressOf);

/** A host as sockets and address lists expect it: URLs put an IPv6 address in brackets (RFC 3986 section 3.2.2). */
export const hostWithoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '');

/** Whether a host, also as `URL.hostname` returns it, is reachable from this machine only. */
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
      'this is the SHA-256 of an empty string; hash the secret itself',
    );

/** The output of `echo | sha256sum` and `printf '' | sha256sum`: hashes of a variable that was never set. */
const emptySecretHashes = new Set(['', '\n'].map((text) => createHash('sha256').update(text).digest('hex')));

const addressExpected = 'expected a URL such as https://api.bank.example/psd2';

function addressOf(text: string, context: z.RefinementCtx): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const problem = url ? problemOf(url, text) : addressExpected;
  if (url && !problem) return url.origin + url.pathname.replace(/\/$/, '');
  context.addIssue({ code: 'custom', message: problem ?? '' });
  return z.NEVER;
}

function problemOf(url: URL, text: string): string | undefined {
  if (!['http:', 'https:'].includes(url.protocol))
    return 'expected a URL that begins with https:// or http://';
  if (url.username || url.password)
    return 'credentials are not allowed in a URL; remove the part before the @';
  if (text.includes('?')) return 'a query is not allowed here; remove the "?" and everything after it';
  if (text.includes('#')) return 'a fragment is not allowed here; remove the "#" and everything after it';
  if (!plainPath.test(url.pathname))
    return 'the path of the URL may contain only letters, digits, ".", "_", "~" and "-" between single slashes';
  return undefined;
}

const issuerExpected = 'expected the URL of an issuer, such as https://login.example/realms/bank';

function issuerProblem(url: URL, text: string): string | undefined {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname)))
    return 'expected a URL that begins with https://; http:// is possible on loopback only';
  if (url.pathname.includes('/.well-known/'))
    return 'expected the issuer itself; remove /.well-known/ and everything after it';
  return problemOf(url, text);
}

const plainPath = /^(?:\/[A-Za-z0-9._~-]+)*\/?$/;
