/** Loads configurations from texts in tests. */

import assert from 'node:assert/strict';
import type { EnvironmentVariables } from '../../../src/config/environment-variables.ts';
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { withFile } from '../../kit/folder.ts';

/** The shortest valid configuration: one environment. */
export const minimalConfig = 'environments: { sandbox: { baseUrl: https://api.bank.example } }\n';

/** Parses a text that must be a valid configuration. */
export function loadValid(text: string, variables: EnvironmentVariables = {}): Config {
  const loaded = load(text, variables);
  assert.equal(loaded.kind, 'valid', JSON.stringify(loaded, null, 1));
  return loaded.config;
}

/** The errors in a text, without the name of the file: they begin with `:LINE`. */
export function errorsIn(text: string, variables: EnvironmentVariables = {}): readonly string[] {
  const loaded = load(text, variables);
  return loaded.kind === 'valid' ? [] : loaded.errors;
}

function load(text: string, variables: EnvironmentVariables): LoadedConfig {
  return withFile(text, (file) => {
    const loaded = loadConfig(file, variables);
    if (loaded.kind === 'valid') return loaded;
    return { ...loaded, errors: loaded.errors.map((error) => error.replace(file, '')) };
  });
}
