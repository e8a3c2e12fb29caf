/** Loads configurations that a test writes down as text. */

import assert from 'node:assert/strict';
import type { EnvironmentVariables } from '../../../src/config/environment-variables.ts';
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { withFile } from '../../kit/folder.ts';

/** One environment and nothing else: the shortest file that is valid. */
export const minimalConfig = 'environments: { sandbox: { baseUrl: https://api.bank.example } }\n';

/** The configuration in a text that must be valid. */
export function loadValid(text: string, variables: EnvironmentVariables = {}): Config {
  const loaded = load(text, variables);
  assert.equal(loaded.kind, 'valid', JSON.stringify(loaded, null, 1));
  return loaded.config;
}

/** What is wrong with a text; the name of the file is left out, so that lines begin with `:LINE`. */
export function errorsIn(text: string, variables: EnvironmentVariables = {}): readonly string[] {
  const loaded = load(text, variables);
  return loaded.kind === 'valid' ? [] : loaded.faults;
}

function load(text: string, variables: EnvironmentVariables): LoadedConfig {
  return withFile(text, (file) => {
    const loaded = loadConfig(file, variables);
    if (loaded.kind === 'valid') return loaded;
    return { ...loaded, faults: loaded.faults.map((fault) => fault.replace(file, '')) };
  });
}
