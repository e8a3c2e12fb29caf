/** Applies environment variables as settings: `PENSTOCK_LISTEN_PORT` sets `listen.port` and overrides the file. */

import { closestName } from './did-you-mean.ts';
import { isMapping, type SettingPath, valueAt, withValue } from './object-path.ts';
import { anyName, type JsonSchema, settings } from './settings.ts';

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** Raw settings after the variables were applied. */
export interface OverriddenSettings {
  readonly tree: unknown;
  /** The applied variables, each with the path of the setting that it set. */
  readonly overrides: readonly { readonly variable: string; readonly path: SettingPath }[];
  /** One error for each variable that names no setting. */
  readonly errors: readonly {
    readonly variable: string;
    readonly path: SettingPath;
    readonly message: string;
  }[];
}

/** The variable that overrides a setting; `<NAME>` in it stands for the name of an environment or a tenant. */
export const variableName = (path: readonly string[]): string =>
  ['PENSTOCK', ...path.map((part) => (part === anyName ? '<NAME>' : upperSnake(part)))].join('_');

/** The variable that sets the value at this path, or the list or mapping that contains it. */
export function variableOf(path: SettingPath): string | undefined {
  const setting = settings.find((candidate) =>
    candidate.path.every((part, index) => part === path[index] || (part === anyName && index < path.length)),
  );
  return setting && variableName(path.slice(0, setting.path.length).map(String));
}

/** @param tree the settings of the file */
export const applyVariables = (tree: unknown, variables: EnvironmentVariables): OverriddenSettings =>
  Object.entries(variables)
    .filter(([name, text]) => name.startsWith('PENSTOCK_') && text !== undefined && !isReserved(name, text))
    .sort() // by name, so that new environments have the same order on every instance
    .reduce<OverriddenSettings>(applyVariable, { tree, overrides: [], errors: [] });

const upperSnake = (name: string) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase();

/** These are no settings. load.ts reads them: the path of the file, and secrets. */
const notSettings: readonly string[] = [
  'PENSTOCK_CONFIG',
  'PENSTOCK_ADMIN_TOKEN',
  'PENSTOCK_ADMIN_OIDC_CLIENT_SECRET',
];

/**
 * Kubernetes sets variables for each service. Those of a service called `penstock` or `penstock-admin` look like settings:
 * `PENSTOCK_SERVICE_HOST`, `PENSTOCK_ADMIN_PORT=tcp://10.0.0.1:9090`.
 */
const isReserved = (name: string, text: string) =>
  notSettings.includes(name) ||
  /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?$/.test(name) ||
  (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text));

function applyVariable(
  { tree, overrides, errors }: OverriddenSettings,
  [variable, text = '']: readonly [string, string | undefined],
): OverriddenSettings {
  const setting = patterns.find(({ pattern }) => pattern.test(variable));
  if (!setting) return { tree, overrides, errors: [...errors, unknownVariable(variable, tree)] };
  const name = nameIn(setting.path[0] ?? '', setting.pattern.exec(variable)?.[1] ?? '', tree);
  const path = setting.path.map((part) => (part === anyName ? name : part));
  const value = parseValue(text, setting.schema);
  return { tree: withValue(tree, path, value), overrides: [...overrides, { variable, path }], errors };
}

/** Longest first, because both parts of `PENSTOCK_ENVIRONMENTS_<NAME>_<SETTING>` may contain underscores. */
const patterns = settings
  .toSorted((one, other) => variableName(other.path).length - variableName(one.path).length)
  .map(({ path, schema }) => {
    return { path, schema, pattern: new RegExp(`^${variableName(path).replace('<NAME>', '(.+)')}$`) };
  });

/** The environment or tenant of the file that matches `capitals`; otherwise a new name derived from `capitals`. */
function nameIn(section: string, capitals: string, tree: unknown): string {
  const named = valueAt(tree, [section]);
  const names = isMapping(named) ? Object.keys(named) : [];
  return names.find((name) => upperSnake(name) === capitals) ?? capitals.toLowerCase().replaceAll('_', '-');
}

function unknownVariable(variable: string, tree: unknown): OverriddenSettings['errors'][number] {
  const entries = /^PENSTOCK_ENVIRONMENTS_.+_(?:HEADERS|QUERY|PATH_VERSION)(?=_)/.exec(variable)?.[0];
  if (entries !== undefined) {
    const message = `a variable cannot set a single entry; set ${entries} to all of them as JSON, or write { env: NAME } as the value in the file`;
    return { variable, path: [], message };
  }
  const known = [...settings.flatMap(({ path }) => variablesOf(path, tree)), ...notSettings];
  const similar = closestName(variable, known);
  const [first, ...others] = similar === undefined ? withSameEnd(variable, known) : [similar];
  const hint =
    first === undefined || others.length >= maxSuggestions
      ? 'docs/configuration.md lists the variables'
      : `did you mean ${[first, ...others].join(' or ')}?`;
  return { variable, path: [], message: `unknown environment variable; ${hint}` };
}

const maxSuggestions = 3;

/**
 * The shortest variables that end with the same words: `PENSTOCK_LISTEN_PORT` and `PENSTOCK_ADMIN_PORT`, but not
 * `PENSTOCK_LISTEN_REUSE_PORT`, for `PENSTOCK_PORT`.
 */
function withSameEnd(variable: string, known: readonly string[]): readonly string[] {
  const found = known.filter((name) => name.endsWith(variable.replace(/^PENSTOCK/, '')));
  const fewestWords = Math.min(...found.map(wordsIn));
  return found.filter((name) => wordsIn(name) === fewestWords);
}

const wordsIn = (name: string) => name.split('_').length;

/** The variables of a setting: one for each environment or tenant of the file if it is a setting of these. */
function variablesOf([section = '', ...rest]: readonly string[], tree: unknown): readonly string[] {
  const named = valueAt(tree, [section]);
  const [key, ...inner] = rest;
  if (key !== anyName || !isMapping(named)) return [variableName([section, ...rest])];
  const names = Object.keys(named).filter((name) => isMapping(named[name]));
  return names.map((name) => variableName([section, name, ...inner]));
}

/** Converts the text to the type of the setting. Other text stays a string, and the schema then rejects it. */
function parseValue(text: string, schema: JsonSchema): unknown {
  const types = typesOf(schema);
  const trimmed = text.trim();
  if (types.includes('null') && (trimmed === '' || trimmed === 'null')) return null;
  if (types.includes('boolean') && /^(true|false)$/.test(trimmed)) return trimmed === 'true';
  if (types.includes('integer') && /^-?\d+$/.test(trimmed)) return Number(trimmed);
  if (/^[[{]/.test(trimmed) && (types.includes('array') || types.includes('object')))
    return parseJson(trimmed);
  if (!types.includes('array') || schema.anyOf?.some((choice) => choice.const === trimmed)) return text;
  return trimmed === '' ? [] : trimmed.split(',').map((item) => item.trim());
}

const typesOf = ({ type, anyOf = [] }: JsonSchema): readonly string[] => [
  ...[type ?? []].flat(),
  ...anyOf.flatMap(typesOf),
];

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
