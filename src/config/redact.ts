/** Masks the secrets in a configuration before it is shown to operators. */

import type { Config } from './schema.ts';

const mask = '***';

const secretNames: ReadonlySet<string> = new Set(['apiKeySha256', 'tokenSha256']);

/** A copy in which the hashes of secrets, and the credentials in URLs, are masked. */
export const redactConfig = (config: Config): unknown => redactValue(config, '');

function redactValue(value: unknown, name: string): unknown {
  if (secretNames.has(name)) return mask;
  // Credentials end at the last @ before the path: a password may contain more of them (WHATWG URL, authority state).
  if (typeof value === 'string') return value.replace(/(?<=:\/\/)[^/?#]*(?=@)/, mask);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactValue(inner, key)]));
}
