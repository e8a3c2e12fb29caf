/** Says where a fault lies: on a line of the file, or in an environment variable. */

import type { Overlaid } from './environment-variables.ts';
import { type Fault, pathText } from './faults.ts';
import type { Path } from './path.ts';
import { valueAt, within } from './trees.ts';
import type { YamlText } from './yaml-text.ts';

/** What the faults were found in. */
export interface Sources {
  /** The name of the file, if there is one. */
  readonly file: string | undefined;
  readonly yaml: YamlText;
  readonly overlaid: Overlaid;
}

/** The line that tells a fault, and where it belongs among the others. */
export interface Told {
  readonly text: string;
  readonly order: number;
}

/** After all lines of the file. */
const atTheEnd = Infinity;

/** Tells a fault that lies in the file or in one of the variables. */
export function told(fault: Fault, sources: Sources): Told {
  const path = writtenPath(fault, sources.overlaid.tree);
  const variable = variableAt(path, sources);
  if (variable !== undefined) return toldOf(variable, fault);
  if (sources.file === undefined) return { text: text('configuration', fault), order: atTheEnd };
  return toldAt(sources.file, sources.yaml.lineOf(path), fault);
}

/** Tells a fault that lies on a line. */
export const toldAt = (file: string | undefined, line: number, fault: Fault): Told => ({
  text: text(`${file}:${line}`, fault),
  order: line,
});

/** Tells a fault that lies in a variable. */
export const toldOf = (variable: string, fault: Fault): Told => ({
  text: text(variable, fault),
  order: atTheEnd,
});

/** The lines of all faults, in the order of the file; those of variables come last. */
export const inOrder = (all: readonly Told[]): readonly string[] =>
  all.toSorted((one, other) => one.order - other.order || 0).map((one) => one.text);

const text = (where: string, { path, message }: Fault) =>
  path.length > 0 ? `${where} ${pathText(path)}: ${message}` : `${where} ${message}`;

/** The setting itself, or if that is a default, the one that it disagrees with. */
const writtenPath = ({ path, against = [] }: Fault, tree: unknown): Path =>
  [path, ...against].find((one) => valueAt(tree, one) !== undefined) ?? path;

/** The variable that gave what stands at a path, or if something is missing there, the mapping around it. */
function variableAt(path: Path, { yaml, overlaid: { given } }: Sources): string | undefined {
  const around = given.find((one) => within(path, one.path));
  if (around) return around.variable;
  const parent = path.slice(0, -1);
  if (parent.length === 0 || valueAt(yaml.tree, parent) !== undefined) return undefined;
  return given.find((one) => within(one.path, parent))?.variable;
}
