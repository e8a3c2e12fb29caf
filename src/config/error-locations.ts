/** Says where a fault lies: on a line of the file, or in an environment variable. */

import { type ConfigError, formatPath } from './config-errors.ts';
import type { OverriddenSettings } from './environment-variables.ts';
import { isWithin, type SettingPath, valueAt } from './object-path.ts';
import type { YamlText } from './yaml-text.ts';

/** What the faults were found in. */
export interface ErrorSources {
  /** The name of the file, if there is one. */
  readonly file: string | undefined;
  readonly yaml: YamlText;
  readonly overridden: OverriddenSettings;
}

/** The line that tells a fault, and where it belongs among the others. */
export interface LocatedError {
  readonly line: string;
  readonly order: number;
}

/** After all lines of the file. */
const atTheEnd = Infinity;

/** Tells a fault that lies in the file or in one of the variables. */
export function locateError(fault: ConfigError, sources: ErrorSources): LocatedError {
  const path = writtenPath(fault, sources.overridden.tree);
  const variable = variableAt(path, sources);
  if (variable !== undefined) return errorInVariable(variable, fault);
  if (sources.file === undefined) return { line: text('configuration', fault), order: atTheEnd };
  return errorAtLine(sources.file, sources.yaml.lineOf(path), fault);
}

/** Tells a fault that lies on a line. */
export const errorAtLine = (file: string | undefined, line: number, fault: ConfigError): LocatedError => ({
  line: text(`${file}:${line}`, fault),
  order: line,
});

/** Tells a fault that lies in a variable. */
export const errorInVariable = (variable: string, fault: ConfigError): LocatedError => ({
  line: text(variable, fault),
  order: atTheEnd,
});

/** The lines of all faults, in the order of the file; those of variables come last. */
export const sortedLines = (all: readonly LocatedError[]): readonly string[] =>
  all.toSorted((one, other) => one.order - other.order || 0).map((one) => one.line);

const text = (where: string, { path, message }: ConfigError) =>
  path.length > 0 ? `${where} ${formatPath(path)}: ${message}` : `${where} ${message}`;

/** The setting itself, or if that is a default, the one that it disagrees with. */
const writtenPath = ({ path, against = [] }: ConfigError, tree: unknown): SettingPath =>
  [path, ...against].find((one) => valueAt(tree, one) !== undefined) ?? path;

/** The variable that gave what stands at a path, or if something is missing there, the mapping around it. */
function variableAt(
  path: SettingPath,
  { yaml, overridden: { overrides } }: ErrorSources,
): string | undefined {
  const around = overrides.find((one) => isWithin(path, one.path));
  if (around) return around.variable;
  const parent = path.slice(0, -1);
  if (parent.length === 0 || valueAt(yaml.tree, parent) !== undefined) return undefined;
  return overrides.find((one) => isWithin(one.path, parent))?.variable;
}
