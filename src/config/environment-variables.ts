/** Environment variables as settings: `PENSTOCK_LISTEN_PORT` is `listen.port`, and wins over the file. */

import type { ConfigError } from './config-errors.ts';
import { closestName } from './did-you-mean.ts';
import { isMapping, type SettingPath, valueAt, withValue } from './object-path.ts';
import { anyEnvironment, type JsonSchema, type Setting, settings } from './settings.ts';

/** The variables of a process. */
export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** A tree of raw settings with the variables laid over it. */
export interface OverriddenSettings {
  readonly tree: unknown;
  /** Which variable gave which setting. */
  readonly overrides: readonly { readonly variable: string; readonly path: SettingPath }[];
  readonly errors: readonly (ConfigError & { readonly variable: string })[];
}

/** The variable that overrides a setting; for settings of an environment, with `<NAME>` in it. */
export const variableName = (path: readonly string[]): string =>
  prefix + path.map((name) => (name === anyEnvironment ? '<NAME>' : upperSnake(name))).join('_');

/** Lays the variables over what the file says. */
export function applyVariables(tree: unknown, variables: EnvironmentVariables): OverriddenSettings {
  return Object.entries(variables)
    .filter(([name]) => name.startsWith(prefix) && !notSettings.has(name))
    .filter(([name, text]) => text !== undefined && !isServiceLink(name, text))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .reduce<OverriddenSettings>((so, [name, text]) => overlaidWith(so, name, text ?? ''), {
      tree,
      overrides: [],
      errors: [],
    });
}

const prefix = 'PENSTOCK_';
const environmentPrefix = `${prefix}ENVIRONMENTS_`;

/** Read elsewhere: where the file is, and the token of the operator "admin". */
const notSettings: ReadonlySet<string> = new Set(['PENSTOCK_CONFIG', 'PENSTOCK_ADMIN_TOKEN']);

/**
 * Kubernetes sets variables for every service it knows, and one called `penstock` or `penstock-admin` makes them
 * look like settings: `PENSTOCK_SERVICE_HOST`, `PENSTOCK_ADMIN_PORT=tcp://10.0.0.1:9090`.
 */
function isServiceLink(name: string, text: string): boolean {
  if (/_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$/.test(name) || /_PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?$/.test(name))
    return true;
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text);
}

const upperSnake = (name: string) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase();

function overlaidWith(so: OverriddenSettings, variable: string, text: string): OverriddenSettings {
  const target = targetOf(variable, so.tree);
  if (!target) return { ...so, errors: [...so.errors, unknown(variable)] };
  const value = valueFrom(text, target.setting.schema);
  return {
    ...so,
    tree: withValue(so.tree, target.path, value),
    overrides: [...so.overrides, { variable, path: target.path }],
  };
}

interface Target {
  readonly setting: Setting;
  readonly path: readonly string[];
}

function targetOf(variable: string, tree: unknown): Target | undefined {
  const setting = settings.find(
    ({ path }) => !path.includes(anyEnvironment) && variableName(path) === variable,
  );
  return setting ? { setting, path: setting.path } : targetInEnvironment(variable, tree);
}

/** `PENSTOCK_ENVIRONMENTS_<NAME>_<SETTING>`: both may hold underscores, so the longest name of a setting wins. */
function targetInEnvironment(variable: string, tree: unknown): Target | undefined {
  if (!variable.startsWith(environmentPrefix)) return undefined;
  const rest = variable.slice(environmentPrefix.length);
  const [longest] = settings
    .filter(({ path }) => path.includes(anyEnvironment))
    .map((setting) => ({ setting, suffix: `_${setting.path.slice(2).map(upperSnake).join('_')}` }))
    .filter(({ suffix }) => rest.endsWith(suffix) && rest.length > suffix.length)
    .sort((one, other) => other.suffix.length - one.suffix.length);
  if (!longest) return undefined;

  const name = environmentNamed(rest.slice(0, -longest.suffix.length), tree);
  return {
    setting: longest.setting,
    path: longest.setting.path.map((part) => (part === anyEnvironment ? name : part)),
  };
}

/** The environment of the file that is written like this in a variable, or else a new one. */
function environmentNamed(capitals: string, tree: unknown): string {
  const known = valueAt(tree, ['environments']);
  const names = isMapping(known) ? Object.keys(known) : [];
  return names.find((name) => upperSnake(name) === capitals) ?? capitals.toLowerCase().replaceAll('_', '-');
}

function unknown(variable: string): ConfigError & { variable: string } {
  const known = settings.map(({ path }) => variableName(path));
  const meant = closestName(variable, [...known, ...notSettings]);
  const hint = meant ? `did you mean ${meant}?` : 'remove it, or see docs/configuration.md for their names';
  return { variable, path: [], message: `there is no such setting; ${hint}` };
}

/** Text as the value that the file would hold; what does not fit stays text, for the schema to refuse. */
function valueFrom(text: string, schema: JsonSchema): unknown {
  const kinds = kindsOf(schema);
  const trimmed = text.trim();
  if (kinds.includes('null') && (trimmed === '' || trimmed === 'null')) return null;
  if (kinds.includes('boolean')) return trimmed === 'true' || (trimmed === 'false' ? false : text);
  if (kinds.includes('integer') && /^-?\d+$/.test(trimmed)) return Number(trimmed);
  if (/^[[{]/.test(trimmed) && (kinds.includes('array') || kinds.includes('object')))
    return fromJson(trimmed);
  if (!kinds.includes('array') || schema.anyOf?.some((choice) => choice.const === trimmed)) return text;
  return trimmed === '' ? [] : trimmed.split(',').map((item) => item.trim());
}

const kindsOf = ({ type, anyOf = [] }: JsonSchema): readonly string[] => [
  ...[type ?? []].flat(),
  ...anyOf.flatMap(kindsOf),
];

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
