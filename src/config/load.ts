/** Loads the configuration: file, then environment variables. The only place that reads `process.env`. */

import { readFileSync } from 'node:fs';
import { check } from './check.ts';
import { type Overlaid, overlay, type Variables } from './environment-variables.ts';
import { type Fault, pathText } from './faults.ts';
import type { AdminSettings, Config } from './schema.ts';
import { readSecret } from './secrets.ts';
import type { Path } from './settings.ts';
import { isMapping, valueAt, within } from './trees.ts';
import { readYaml, type YamlText } from './yaml-text.ts';

/** A configuration, or everything that is wrong with it: one line each, `FILE:LINE path: what to change`. */
export type Loaded =
  | { readonly kind: 'valid'; readonly config: Config }
  | { readonly kind: 'faulty'; readonly faults: readonly string[] };

/** Which file to load: the one of the command line, else that of `PENSTOCK_CONFIG`, else none. */
export const configSource = (
  argument: string | undefined,
  variables: Variables = process.env,
): string | undefined => argument ?? (variables.PENSTOCK_CONFIG || undefined);

/**
 * Loads and checks the configuration. Files that it names (keys, certificates) are not opened.
 *
 * @param file  the path of a YAML file, or `undefined` for defaults and environment variables alone
 */
export function loadConfig(file: string | undefined, variables: Variables = process.env): Loaded {
  const source = sourceOf(file);
  if ('fault' in source) return { kind: 'faulty', faults: [source.fault] };

  const { yaml } = source;
  const { tree, given, faults: unknown } = overlay(sectionsOf(yaml.tree), variables);
  const checked = yaml.readable
    ? check(tree, {
        adminToken: Boolean(variables.PENSTOCK_ADMIN_TOKEN),
        fromVariable: (path) => given.some((one) => within(path, one.path)),
      })
    : undefined;

  const place = (path: Path): Place => {
    const variable = variableAt(path, yaml.tree, given);
    if (variable !== undefined) return { where: variable, order: Infinity };
    if (file === undefined) return { where: 'configuration', order: Infinity };
    const line = yaml.lineOf(path);
    return { where: `${file}:${line}`, order: line };
  };
  const faults: readonly Placed[] = [
    ...yaml.faults.map(({ line, message }) => ({ where: `${file}:${line}`, order: line, path: [], message })),
    ...(checked?.kind === 'faulty' ? checked.faults : []).map((fault) => ({
      ...place(fault.path),
      ...fault,
    })),
    ...unknown.map((fault) => ({ ...fault, where: fault.variable, order: Infinity })),
  ];
  if (checked?.kind === 'valid' && faults.length === 0) return checked;
  return { kind: 'faulty', faults: lines(faults) };
}

/**
 * The bearer token of the operator "admin": from `PENSTOCK_ADMIN_TOKEN`, else from `admin.tokenFile`.
 *
 * @returns `undefined` if neither is set
 * @throws Error if the file cannot be read or is empty; the message says which
 */
export function adminToken(admin: AdminSettings, variables: Variables = process.env): string | undefined {
  if (variables.PENSTOCK_ADMIN_TOKEN) return variables.PENSTOCK_ADMIN_TOKEN;
  return admin.tokenFile === null ? undefined : readSecret(admin.tokenFile);
}

interface Place {
  readonly where: string;
  /** Faults are told in the order of the file's lines, those of variables last. */
  readonly order: number;
}
type Placed = Fault & Place;

/** The variable that is to blame for what stands at a path, or for what is missing where it led to a mapping of its own. */
function variableAt(path: Path, fileTree: unknown, given: Overlaid['given']): string | undefined {
  const around = given.find((one) => within(path, one.path));
  if (around) return around.variable;
  const parent = path.slice(0, -1);
  if (parent.length === 0 || valueAt(fileTree, parent) !== undefined) return undefined;
  return given.find((one) => within(one.path, parent))?.variable;
}

function sourceOf(file: string | undefined): { readonly yaml: YamlText } | { readonly fault: string } {
  if (file === undefined) return { yaml: readYaml('') };
  try {
    return { yaml: readYaml(readFileSync(file, 'utf8')) };
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
    return {
      fault: `${file}: cannot be read (${code}); name a readable file with --config FILE or PENSTOCK_CONFIG`,
    };
  }
}

/** A section with all its lines commented out is null in YAML, and means its defaults. */
const sectionsOf = (tree: unknown): unknown =>
  isMapping(tree) ? Object.fromEntries(Object.entries(tree).filter(([, section]) => section !== null)) : tree;

const lines = (faults: readonly Placed[]) =>
  faults
    .toSorted((one, other) => one.order - other.order || 0)
    .map(({ where, path, message }) => `${where} ${path.length > 0 ? `${pathText(path)}: ` : ''}${message}`);
