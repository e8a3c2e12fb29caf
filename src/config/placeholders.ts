/** Finds values that were copied from an example and not replaced. */

import { createHash } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type { ConfigError } from './config-errors.ts';
import { settingsInFileSyntax } from './file-syntax.ts';
import { isMapping, type SettingPath } from './object-path.ts';
import type { Config } from './schema.ts';
import { hostWithoutBrackets } from './values.ts';

/** One warning for each setting that contains a placeholder. */
export const placeholderWarnings = (config: Config): readonly ConfigError[] =>
  textsIn(settingsInFileSyntax(config), []).flatMap(({ path, text }) => {
    const problem = problemOf(text);
    return problem === undefined ? [] : [{ path, message: problem }];
  });

function problemOf(text: string): string | undefined {
  if (placeholderWords.test(text)) return 'this is a placeholder; replace it';
  if (hash.test(text)) return hashProblem(text);
  const host = URL.canParse(text) ? hostWithoutBrackets(new URL(text).hostname) : '';
  if (!isReserved(host)) return undefined;
  return `${host} is reserved for examples (RFC 2606, RFC 5737), so this is a placeholder; replace it`;
}

/** Words in capitals, so that `todo-app` is a valid name; `<NAME>`, `${NAME}` and `{{ name }}` of templates. */
const placeholderWords =
  /\b(CHANGE|REPLACE|TODO|FIXME|XXX+|YOUR)(?![a-z0-9])|change[-_]?me|replace[-_]?me|<[\w .-]+>|\$\{\w+\}|\{\{.*\}\}/;

const hash = /^[0-9a-f]{64}$/;

function hashProblem(digest: string): string | undefined {
  if (/(.)\1{15}/.test(digest)) return 'this hash is a placeholder; replace it with the SHA-256 of a secret';
  const secret = exampleSecrets.get(digest);
  return (
    secret &&
    `this is the SHA-256 of "${secret}"; generate a secret (openssl rand -base64 32), and write its SHA-256`
  );
}

/** Secrets that examples and tutorials use, by their hash. */
const exampleSecrets: ReadonlyMap<string, string> = new Map(
  [
    'admin',
    'change-me',
    'changeme',
    'demo',
    'example',
    'password',
    'penstock',
    'secret',
    'test',
    'token',
  ].map((secret) => [createHash('sha256').update(secret).digest('hex'), secret]),
);

function isReserved(host: string): boolean {
  const family = isIP(host);
  if (family !== 0) return documentationAddresses.check(host, family === 4 ? 'ipv4' : 'ipv6');
  return /(^|\.)(example|invalid|example\.(com|net|org))$/.test(host);
}

const documentationAddresses = new BlockList();
documentationAddresses.addSubnet('192.0.2.0', 24, 'ipv4');
documentationAddresses.addSubnet('198.51.100.0', 24, 'ipv4');
documentationAddresses.addSubnet('203.0.113.0', 24, 'ipv4');
documentationAddresses.addSubnet('2001:db8::', 32, 'ipv6');

interface SettingText {
  readonly path: SettingPath;
  readonly text: string;
}

function textsIn(value: unknown, path: SettingPath): readonly SettingText[] {
  if (typeof value === 'string') return [{ path, text: value }];
  if (Array.isArray(value)) return value.flatMap((item, index) => textsIn(item, [...path, index]));
  if (!isMapping(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, [...path, key]));
}
