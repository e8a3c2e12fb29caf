/** Masks the secrets in a configuration before it is shown to operators. */

import { settingsInFileSyntax } from './file-syntax.ts';
import type { Config } from './schema.ts';

/** Shown instead of a secret. */
export const secretMask = '***';

/** The settings that contain secrets, or hashes that secrets could be guessed from. */
export const secretNames: ReadonlySet<string> = new Set(['apiKeySha256', 'tokenSha256']);

/**
 * Masks the credentials in a URL. They end at the last @ before the path: a password may contain more of them (WHATWG URL,
 * authority state).
 */
export const maskText = (text: string, mask: string = secretMask): string =>
  text.replace(/(?<=:\/\/)[^/?#]*(?=@)/, mask);

/**
 * Every effective setting with the names, units and structure of the configuration file. The hashes of secrets, and the
 * credentials in URLs, are masked.
 */
export const redactConfig = (config: Config): unknown => redactValue(settingsInFileSyntax(config), '');

function redactValue(value: unknown, name: string): unknown {
  if (secretNames.has(name)) return secretMask;
  if (typeof value === 'string') return maskText(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactValue(inner, key)]));
}
