/** Loads configurations that a test writes down as text. */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Variables } from '../../../src/config/environment-variables.ts';
import { type Loaded, loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';

/** One environment and nothing else: the shortest file that is valid. */
export const shortest = 'environments: { sandbox: { baseUrl: https://api.bank.example } }\n';

/** Gives a file of this content to `use`, and removes it afterwards. */
export function withFile<Result>(content: string, use: (file: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-config-'));
  const file = join(folder, 'penstock.yaml');
  try {
    writeFileSync(file, content);
    return use(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The configuration in a text that must be valid. */
export function configIn(text: string, variables: Variables = {}): Config {
  const loaded = load(text, variables);
  assert.equal(loaded.kind, 'valid', JSON.stringify(loaded, null, 1));
  return loaded.config;
}

/** What is wrong with a text; the name of the file is left out, so that lines begin with `:LINE`. */
export function faultsIn(text: string, variables: Variables = {}): readonly string[] {
  const loaded = load(text, variables);
  return loaded.kind === 'valid' ? [] : loaded.faults;
}

function load(text: string, variables: Variables): Loaded {
  return withFile(text, (file) => {
    const loaded = loadConfig(file, variables);
    if (loaded.kind === 'valid') return loaded;
    return { ...loaded, faults: loaded.faults.map((fault) => fault.replace(file, '')) };
  });
}
