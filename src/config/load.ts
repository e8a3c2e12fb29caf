/** Loads the configuration: file, then environment variables. The only place that reads `process.env`. */

import { readFileSync } from 'node:fs';
import { type Read, readNow } from '../certificates/watched-files.ts';
import { check } from './check.ts';
import { overlay, type Variables } from './environment-variables.ts';
import { inOrder, told, toldAt, toldOf } from './places.ts';
import type { AdminSettings, Config } from './schema.ts';
import { readSecret } from './secrets.ts';
import { isMapping, within } from './trees.ts';
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
export const loadConfig = (file: string | undefined, variables: Variables = process.env): Loaded =>
  load(file, variables);

/** The same for whoever is going to use them: the files that it names are opened and checked, too. */
export const loadConfigAndFiles = (file: string | undefined, variables: Variables = process.env): Loaded =>
  load(file, variables, readNow);

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

function load(file: string | undefined, variables: Variables, read?: Read): Loaded {
  const source = sourceOf(file);
  if ('fault' in source) return { kind: 'faulty', faults: [source.fault] };

  const { yaml } = source;
  const overlaid = overlay(sectionsOf(yaml.tree), variables);
  const checked = check(overlaid.tree, {
    read,
    adminToken: Boolean(variables.PENSTOCK_ADMIN_TOKEN),
    fromVariable: (path) => overlaid.given.some((one) => within(path, one.path)),
  });

  // Of a text that is no YAML, only this is told: whatever else seems wrong with it may just not have been read.
  const found = checked.kind === 'faulty' && yaml.readable ? checked.faults : [];
  const faults = inOrder([
    ...yaml.faults.map(({ line, message }) => toldAt(file, line, { path: [], message })),
    ...found.map((fault) => told(fault, { file, yaml, overlaid })),
    ...overlaid.faults.map((fault) => toldOf(fault.variable, fault)),
  ]);
  return checked.kind === 'valid' && faults.length === 0 ? checked : { kind: 'faulty', faults };
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

/** What Node itself was told, by the environment and then on its command line, with blanks between. */
export const nodeFlags = (): string => [process.env.NODE_OPTIONS, ...process.execArgv].join(' ');
