/** Finds the location of a configuration error: a line of the file, or an environment variable. */

import { type ConfigError, formatPath } from './config-errors.ts';
import type { OverriddenSettings } from './environment-variables.ts';
import { isWithin, type SettingPath, valueAt } from './object-path.ts';
import type { YamlText } from './yaml-text.ts';

/** The sources of the settings. */
export interface ErrorSources {
  /** The name of the file, if there is one. */
  readonly file: string | undefined;
  readonly yaml: YamlText;
  readonly overridden: OverriddenSettings;
}

/** Where a setting got its value from. */
export type SettingOrigin =
  | { readonly kind: 'file'; readonly line: number }
  | { readonly kind: 'variable'; readonly variable: string };

/** `undefined` for a setting that has its default. */
export function originOf(path: SettingPath, { yaml, overridden }: ErrorSources): SettingOrigin | undefined {
  const override = overridden.overrides.find((candidate) => isWithin(path, candidate.path));
  if (override) return { kind: 'variable', variable: override.variable };
  if (valueAt(overridden.tree, path) === undefined) return undefined;
  return { kind: 'file', line: yaml.lineOf(path) };
}

/** The text of an error with its location, and its sort key. */
export interface LocatedError {
  readonly text: string;
  /** The line of the file; `Infinity` for errors outside the file. */
  readonly line: number;
}

export function locateError(error: ConfigError, sources: ErrorSources): LocatedError {
  const path = givenPath(error, sources.overridden.tree);
  const variable = variableAt(path, sources);
  if (variable !== undefined) return errorInVariable(variable, error);
  if (sources.file === undefined) return { text: format('configuration', error), line: Infinity };
  return errorAtLine(sources.file, sources.yaml.lineOf(path), error);
}

export const errorAtLine = (file: string | undefined, line: number, error: ConfigError): LocatedError => ({
  text: format(`${file}:${line}`, error),
  line,
});

export const errorInVariable = (variable: string, error: ConfigError): LocatedError => ({
  text: format(variable, error),
  line: Infinity,
});

/** The error texts, sorted by line number; errors outside the file come last. */
export const sortedTexts = (errors: readonly LocatedError[]): readonly string[] =>
  errors.toSorted((one, other) => one.line - other.line || 0).map(({ text }) => text);

const format = (location: string, { path, message }: ConfigError) =>
  path.length > 0 ? `${location} ${formatPath(path)}: ${message}` : `${location} ${message}`;

/** The first path of the error whose setting has an explicit value: the other settings have their defaults. */
const givenPath = ({ path, related = [] }: ConfigError, tree: unknown): SettingPath =>
  [path, ...related].find((candidate) => valueAt(tree, candidate) !== undefined) ?? path;

/** The variable that set the value at a path. If no value is set: the variable that created its parent mapping. */
function variableAt(path: SettingPath, { yaml, overridden }: ErrorSources): string | undefined {
  const override = overridden.overrides.find((candidate) => isWithin(path, candidate.path));
  if (override) return override.variable;
  const parent = path.slice(0, -1);
  if (parent.length === 0 || valueAt(yaml.tree, parent) !== undefined) return undefined;
  return overridden.overrides.find((candidate) => isWithin(candidate.path, parent))?.variable;
}
