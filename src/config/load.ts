/** Loads the configuration: file, then environment variables. The only place that reads `process.env`. */

import { readFileSync } from 'node:fs';
import { type ReadFile, readFromDisk } from '../certificates/file-watcher.ts';
import { applyVariables, type EnvironmentVariables } from './environment-variables.ts';
import { errorAtLine, errorInVariable, locateError, sortedLines } from './error-locations.ts';
import { isMapping, isWithin } from './object-path.ts';
import type { AdminSettings, Config } from './schema.ts';
import { validateSettings } from './validate.ts';
import { readYaml, type YamlText } from './yaml-text.ts';

/** A configuration, or everything that is wrong with it: one line each, `FILE:LINE path: what to change`. */
export type LoadedConfig =
  | { readonly kind: 'valid'; readonly config: Config }
  | { readonly kind: 'faulty'; readonly faults: readonly string[] };

/** Which file to load: the one of the command line, else that of `PENSTOCK_CONFIG`, else none. */
export const configSource = (
  argument: string | undefined,
  variables: EnvironmentVariables = process.env,
): string | undefined => argument ?? (variables.PENSTOCK_CONFIG || undefined);

/**
 * Loads and checks the configuration. Files that it names (keys, certificates) are not opened.
 *
 * @param file  the path of a YAML file, or `undefined` for defaults and environment variables alone
 */
export const loadConfig = (
  file: string | undefined,
  variables: EnvironmentVariables = process.env,
): LoadedConfig => load(file, variables);

/** The same for whoever is going to use them: the files that it names are opened and checked, too. */
export const loadConfigAndFiles = (
  file: string | undefined,
  variables: EnvironmentVariables = process.env,
): LoadedConfig => load(file, variables, readFromDisk);

/**
 * The bearer token of the operator "admin": from `PENSTOCK_ADMIN_TOKEN`, else from `admin.tokenFile`.
 *
 * @returns `undefined` if neither is set
 * @throws Error if the file cannot be read or is empty; the message says which
 */
export function adminToken(
  admin: AdminSettings,
  variables: EnvironmentVariables = process.env,
): string | undefined {
  if (variables.PENSTOCK_ADMIN_TOKEN) return variables.PENSTOCK_ADMIN_TOKEN;
  return admin.tokenFile === null ? undefined : readSecret(admin.tokenFile);
}

function load(file: string | undefined, variables: EnvironmentVariables, read?: ReadFile): LoadedConfig {
  const source = sourceOf(file);
  if ('fault' in source) return { kind: 'faulty', faults: [source.fault] };

  const { yaml } = source;
  const overridden = applyVariables(sectionsOf(yaml.tree), variables);
  const checked = validateSettings(overridden.tree, {
    read,
    adminToken: Boolean(variables.PENSTOCK_ADMIN_TOKEN),
    isFromVariable: (path) => overridden.overrides.some((one) => isWithin(path, one.path)),
  });

  // Of a text that is no YAML, only this is told: whatever else seems wrong with it may just not have been read.
  const found = checked.kind === 'faulty' && yaml.readable ? checked.errors : [];
  const faults = sortedLines([
    ...yaml.errors.map(({ line, message }) => errorAtLine(file, line, { path: [], message })),
    ...found.map((fault) => locateError(fault, { file, yaml, overridden })),
    ...overridden.errors.map((fault) => errorInVariable(fault.variable, fault)),
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

// MERGED HEADER (rewrite or remove):
/* Secrets that stand in a file of their own. */

/**
 * The secret in a file, without the line break that editors leave at its end.
 *
 * @throws Error if the file cannot be read or is empty; names the file, never its content
 */
function readSecret(file: string): string {
  const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  if (secret === '') throw new Error(`the secret in ${file} is empty`);
  return secret;
}
