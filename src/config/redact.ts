/** Masks the secrets in a configuration before it is shown to operators. */

import { settingsInFileSyntax } from './file-syntax.ts';
import { isSecretText } from './fixed-values.ts';
import type { SettingPath } from './object-path.ts';
import type { Config } from './schema.ts';

/** Shown instead of a secret. */
export const secretMask = '***';

/** Settings with hashes that secrets could be guessed from. */
const hashNames: ReadonlySet<string> = new Set(['apiKeySha256', 'tokenSha256']);

/** Whether a setting contains the hash of a secret. */
export const isSecretHash = (path: SettingPath): boolean => hashNames.has(String(path.at(-1)));

/** Whether the value of a setting is masked. @param value only a text can be the secret itself; a file or variable is shown */
export const isSecret = (path: SettingPath, value: unknown): boolean =>
  isSecretHash(path) || (typeof value === 'string' && isSecretText(path));

/**
 * Masks the credentials in a URL. They end at the last @ before the path: a password may contain more of them (WHATWG URL,
 * authority state).
 *
 * @param mask if it is empty, the rest is a URL without credentials
 */
export function maskText(text: string, mask: string = secretMask): string {
  if (/^postgres(ql)?:/i.test(text)) return maskPostgresUrl(text, mask);
  const masked = text.replace(/(?<=:\/\/)[^/?#]*(?=@)/, mask);
  return mask === '' ? masked.replace('://@', '://') : masked;
}

/** The name of the role stays: a configuration file may contain it. A password may also be a parameter, as for libpq. */
function maskPostgresUrl(text: string, mask: string): string {
  return text
    .replace(/(?<=:\/\/[^:/?#]*):[^/?#]*(?=@)/, mask === '' ? '' : `:${mask}`)
    .replace(/([?&])password=[^&#]*(&?)/g, (_, before: string, after: string) => {
      if (mask !== '') return `${before}password=${mask}${after}`;
      return after === '' ? '' : before;
    });
}

/**
 * Every effective setting with the names, units and structure of the configuration file. The hashes of secrets, and the
 * credentials in URLs, are masked.
 */
export const redactConfig = (config: Config): unknown => redactValue(settingsInFileSyntax(config), []);

function redactValue(value: unknown, path: SettingPath): unknown {
  if (isSecret(path, value)) return secretMask;
  if (typeof value === 'string') return maskText(value);
  if (Array.isArray(value)) return value.map((item, index) => redactValue(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, redactValue(inner, [...path, key])]),
  );
}
