/** The effective configuration as a file, with the source of each value as a comment. It can be used as a configuration. */

import { settingsInFileSyntax } from './file-syntax.ts';
import type { LoadedValidConfig } from './load.ts';
import { isMapping, type SettingPath, valueAt } from './object-path.ts';
import { isSecret, isSecretHash, maskText, secretMask } from './redact.ts';
import type { Config } from './schema.ts';
import { globalSetting } from './setting-orders.ts';
import { schemaAt } from './settings.ts';
import { writeYaml } from './yaml-text.ts';

/** YAML. Secrets are masked in such a way that the file remains valid: hashes by placeholders, credentials by nothing. */
export function showConfig(loaded: LoadedValidConfig): string {
  const tree = maskSecrets(settingsInFileSyntax(loaded.config));
  const header = [
    `Effective configuration${loaded.file === undefined ? '' : ` of ${loaded.file}`}. The comments name the source of each value.`,
    maskedSecrets,
  ];
  return writeYaml(tree, header, (path) => describeSource(path, loaded, valueAt(tree, path)));
}

/** The same for the configuration of a running gateway, which does not know the sources of the values. */
export function configInFileSyntax(config: Config): string {
  const header = ['Effective configuration of this instance.', maskedSecrets];
  return writeYaml(maskSecrets(settingsInFileSyntax(config)), header, () => undefined);
}

const maskedSecrets =
  'Secrets are masked: replace the hashes 00... and the texts *** before you use this as a configuration file.';

/** The effective settings and their sources, for programs. */
export const listSettings = (loaded: LoadedValidConfig): readonly ShownSetting[] =>
  leavesOf(maskSecrets(settingsInFileSyntax(loaded.config)), []).map(({ path, value }) => ({
    path,
    value,
    source: describeSource(path, loaded, value),
  }));

export interface ShownSetting {
  readonly path: SettingPath;
  readonly value: unknown;
  /** `line 12`, `PENSTOCK_LISTEN_PORT`, `default`, or how the default is derived. */
  readonly source: string;
}

function describeSource(path: SettingPath, loaded: LoadedValidConfig, value: unknown): string {
  return sourceOf(path, loaded) + (isSecret(path, value) ? ', masked' : '');
}

function sourceOf(path: SettingPath, { originOf, derived }: LoadedValidConfig): string {
  const origin = originOf(path);
  if (origin?.kind === 'variable') return origin.variable;
  if (origin?.kind === 'file') return `line ${origin.line}`;
  const setting = path.join('.');
  const because = derived.find((one) => one.path.join('.') === setting)?.because;
  if (because) return `default, because ${because.join(', ')}`;
  if (globalSetting(setting) !== setting) {
    const overridden = globalSetting(setting);
    if (/^(deadlines|shaping)\./.test(overridden)) return `as ${overridden}`;
  }
  const { defaultText } = schemaAt(path) ?? {};
  return defaultText === undefined ? 'default' : `default: ${defaultText}`;
}

/** Each masked hash is another one: two clients must not have the same. */
function maskSecrets(tree: unknown): unknown {
  let masked = 0;
  function mask(value: unknown, path: SettingPath): unknown {
    if (isSecretHash(path)) {
      masked += 1;
      return String(masked).padStart(64, '0');
    }
    if (isSecret(path, value)) return secretMask;
    if (typeof value === 'string') return maskText(value, '');
    if (Array.isArray(value)) return value.map((item, index) => mask(item, [...path, index]));
    if (!isMapping(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, mask(inner, [...path, name])]),
    );
  }
  return mask(tree, []);
}

interface Leaf {
  readonly path: SettingPath;
  readonly value: unknown;
}

/** A list of plain values is one value. */
function leavesOf(value: unknown, path: SettingPath): readonly Leaf[] {
  if (isMapping(value))
    return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
  if (Array.isArray(value) && value.some(isMapping))
    return value.flatMap((item, index) => leavesOf(item, [...path, index]));
  return [{ path, value }];
}
