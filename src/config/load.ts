/** Loads the configuration: the file, then environment variables. The only module that reads `process.env`. */

import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { type ReadFile, readFromDisk } from '../certificates/file-watcher.ts';
import type { ConfigError } from './config-errors.ts';
import { readErrorText } from './cross-checks-files.ts';
import { applyVariables, type EnvironmentVariables } from './environment-variables.ts';
import {
  errorAtLine,
  errorInVariable,
  locateError,
  originOf,
  type SettingOrigin,
  sortedTexts,
} from './error-locations.ts';
import { isMapping, isWithin, type SettingPath, valueAt } from './object-path.ts';
import type { AdminSettings, Config } from './schema.ts';
import { admin } from './sections/admin.ts';
import { type ValidConfig, validateSettings } from './validate.ts';
import { configWarnings } from './warnings.ts';
import { readYaml } from './yaml-text.ts';

/** A configuration, or all its errors: one line each, `FILE:LINE path: what to change`. */
export type LoadedConfig = LoadedValidConfig | InvalidConfig;

export interface LoadedValidConfig extends ValidConfig {
  /** What is allowed, but probably not intended in production: one line each, like errors. */
  readonly warnings: readonly string[];
  /** The name of the file, if there is one. */
  readonly file: string | undefined;
  /** Where a setting got its value from; `undefined` if it has its default. */
  readonly originOf: (path: SettingPath) => SettingOrigin | undefined;
}

export interface InvalidConfig {
  readonly kind: 'invalid';
  readonly errors: readonly string[];
  /** Only if all errors are about files that cannot be used; empty otherwise. */
  readonly warnings: readonly string[];
}

/** Treats warnings as errors. */
export function strictly(loaded: LoadedConfig): LoadedConfig {
  if (loaded.warnings.length === 0) return loaded;
  const errors = loaded.kind === 'invalid' ? loaded.errors : [];
  return { kind: 'invalid', errors: [...errors, ...loaded.warnings], warnings: [] };
}

/** The file to load: from the command line, otherwise from `PENSTOCK_CONFIG`; `undefined` if neither names one. */
export const configSource = (
  argument: string | undefined,
  variables: EnvironmentVariables = process.env,
): string | undefined => argument ?? (variables.PENSTOCK_CONFIG || undefined);

/**
 * Loads and validates the configuration. Does not open the files that it names (keys, certificates).
 *
 * @param file  the path of a YAML file, or `undefined` for defaults and environment variables only
 */
export const loadConfig = (
  file: string | undefined,
  variables: EnvironmentVariables = process.env,
): LoadedConfig => load(file, variables);

/** Like `loadConfig`, but also opens and validates the certificate, key and secret files, for processes that use them. */
export const loadConfigAndFiles = (
  file: string | undefined,
  variables: EnvironmentVariables = process.env,
): LoadedConfig => load(file, variables, readFromDisk);

/** Like `loadConfigAndFiles`, for settings in memory with the names and units of the file. */
export const loadSettingsAndFiles = (
  settings: object,
  variables: EnvironmentVariables = process.env,
): LoadedConfig => loadText(stringify(settings), undefined, variables, readFromDisk);

/** The errors of the text of a configuration, each with its setting: without environment variables and the files that it names. */
export function errorsInText(text: string): readonly ConfigError[] {
  const yaml = readYaml(text);
  const result = validateSettings(withoutEmptySections(yaml.tree), {
    adminToken: false,
    oidcClientSecret: false,
    variables: {},
    isFromVariable: () => false,
  });
  return [...yaml.errors, ...(result.kind === 'invalid' && yaml.isReadable ? result.errors : [])];
}

/**
 * The section admin of a configuration, even if other sections contain errors. An invalid section has its defaults.
 *
 * @param file  like that of `loadConfig`
 */
export function loadAdminSettings(
  file: string | undefined,
  variables: EnvironmentVariables = process.env,
): Omit<AdminSettings, 'publicUrl'> {
  const loaded = loadConfig(file, variables);
  if (loaded.kind === 'valid') return loaded.config.admin;
  const source = readSource(file);
  const { tree } = applyVariables('error' in source ? {} : readYaml(source.text).tree, variables);
  return admin.safeParse(valueAt(tree, ['admin'])).data ?? admin.parse({});
}

/**
 * The bearer token of the operator "admin": from `PENSTOCK_ADMIN_TOKEN`, otherwise from `admin.tokenFile`, without the
 * line break at the end of the file.
 *
 * @returns `undefined` if neither is set
 * @throws Error if the file cannot be read or is empty; the message names the file
 */
export function adminToken(
  { tokenFile }: Pick<AdminSettings, 'tokenFile'>,
  variables: EnvironmentVariables = process.env,
): string | undefined {
  return variables.PENSTOCK_ADMIN_TOKEN || readSecret(tokenFile);
}

/**
 * The secret of the client at the OIDC provider: from `PENSTOCK_ADMIN_OIDC_CLIENT_SECRET`, otherwise from
 * `admin.oidc.clientSecretFile`.
 *
 * @returns and throws as `adminToken`
 */
export function oidcClientSecret(
  { oidc }: Pick<AdminSettings, 'oidc'>,
  variables: EnvironmentVariables = process.env,
): string | undefined {
  return oidc && (variables.PENSTOCK_ADMIN_OIDC_CLIENT_SECRET || readSecret(oidc.clientSecretFile));
}

function readSecret(file: string | null): string | undefined {
  if (file === null) return undefined;
  const secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  if (secret === '') throw new Error(`the secret in ${file} is empty`);
  return secret;
}

/** Node's own options, from the environment and the command line, separated by spaces. */
export const nodeFlags = (): string => [process.env.NODE_OPTIONS, ...process.execArgv].join(' ');

function load(file: string | undefined, variables: EnvironmentVariables, read?: ReadFile): LoadedConfig {
  if (file === undefined && !hasSettings(variables)) return invalid([nothingConfigured]);
  const source = readSource(file);
  if ('error' in source) return invalid([source.error]);
  return loadText(source.text, file, variables, read);
}

const invalid = (errors: readonly string[], warnings: readonly string[] = []): InvalidConfig => ({
  kind: 'invalid',
  errors,
  warnings,
});

const nothingConfigured =
  'no configuration file: name one with --config FILE or PENSTOCK_CONFIG, or set environment variables such as ' +
  'PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL';

function hasSettings(variables: EnvironmentVariables): boolean {
  const { overrides, errors } = applyVariables({}, variables);
  return overrides.length + errors.length > 0;
}

function loadText(
  text: string,
  file: string | undefined,
  variables: EnvironmentVariables,
  read?: ReadFile,
): LoadedConfig {
  const yaml = readYaml(text);
  const overridden = applyVariables(withoutEmptySections(yaml.tree), variables);
  const sources = { file, yaml, overridden };
  const context = {
    file,
    read,
    adminToken: Boolean(variables.PENSTOCK_ADMIN_TOKEN),
    oidcClientSecret: Boolean(variables.PENSTOCK_ADMIN_OIDC_CLIENT_SECRET),
    variables,
  };
  const result = validateSettings(overridden.tree, {
    ...context,
    isFromVariable: (path) => overridden.overrides.some((override) => isWithin(path, override.path)),
  });

  // If the text is not valid YAML, the parser may have skipped parts of it, which would cause false errors.
  const settingErrors = result.kind === 'invalid' && yaml.isReadable ? result.errors : [];
  const errors = sortedTexts([
    ...yaml.errors.map(({ line, path, message }) => errorAtLine(file, line, { path, message })),
    ...settingErrors.map((error) => locateError(error, sources)),
    ...overridden.errors.map((error) => errorInVariable(error.variable, error)),
  ]);
  const warningsOf = (config: Config, readFile: ReadFile | undefined) =>
    sortedTexts(
      configWarnings(config, { ...context, read: readFile }).map((warning) => locateError(warning, sources)),
    );
  if (result.kind === 'invalid' && result.config && errors.length === result.errors.length)
    return invalid(errors, warningsOf(result.config, undefined)); // the files cannot be read
  if (result.kind === 'invalid' || errors.length > 0) return invalid(errors);
  return {
    ...result,
    warnings: warningsOf(result.config, read),
    file,
    originOf: (path) => originOf(path, sources),
  };
}

/** A larger file is another one, such as a log. */
const maxConfigBytes = 16 * 1024 * 1024;

function readSource(file: string | undefined): { readonly text: string } | { readonly error: string } {
  if (file === undefined) return { text: '' };
  try {
    const content = readFileSync(file);
    if (content.length > maxConfigBytes)
      return { error: `${file}: larger than 16MiB, so this is not a configuration file; correct the path` };
    if (!isUtf8(content) || content.includes(0))
      return { error: `${file}: not a text in UTF-8; save it in this encoding, or correct the path` };
    return { text: content.toString() };
  } catch (cause) {
    return { error: `${readErrorText(cause, file)}; correct the path of the configuration file` };
  }
}

/** YAML parses a section with only comments as null. Without the section, the schema applies the defaults. */
const withoutEmptySections = (tree: unknown): unknown =>
  isMapping(tree) ? Object.fromEntries(Object.entries(tree).filter(([, section]) => section !== null)) : tree;
