/** The configuration as it may be shown: what opens a door is masked. */

import type { Config } from './schema.ts';

const mask = '***';

/** Names whose values are never shown. */
const secret: ReadonlySet<string> = new Set(['apiKeySha256', 'tokenSha256']);

/** A copy in which hashes of secrets, and credentials within addresses, are masked. */
export const redactConfig = (config: Config): unknown => maskedValue(config, '');

function maskedValue(value: unknown, name: string): unknown {
  if (secret.has(name)) return mask;
  // Credentials end at the last @ before the path: a password may hold others (WHATWG URL, authority state).
  if (typeof value === 'string') return value.replace(/(?<=:\/\/)[^/?#]*(?=@)/, mask);
  if (Array.isArray(value)) return value.map((one) => maskedValue(one, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, maskedValue(one, key)]));
}
