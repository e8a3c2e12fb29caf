/** The files that are deployed, as trees to look into. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { root } from '../kit/command.ts';

export const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

/** The documents of a YAML file; fails if it is none. */
export function documentsIn(file: string): readonly unknown[] {
  return [parseAllDocuments(textOf(file), { merge: true, uniqueKeys: true })].flat().map((document) => {
    assert.deepEqual(document.errors, [], file);
    return document.toJS();
  });
}

/** The value at a path in a tree, or `undefined`. */
export const at = (tree: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((node, name) => Object(node)[name], tree);

/** The entries of a list at a path; none if there is no list. */
export const listAt = (tree: unknown, ...path: readonly (string | number)[]): readonly unknown[] => {
  const found = at(tree, ...path);
  return Array.isArray(found) ? found : [];
};

/** The keys and values of a mapping at a path. */
export const entriesAt = (
  tree: unknown,
  ...path: readonly string[]
): readonly (readonly [string, unknown])[] => Object.entries(Object(at(tree, ...path)));

/** What the gateway makes of a file and variables; fails with every fault. */
export function configIn(file: string, variables: Readonly<Record<string, string>>): Config {
  const loaded = loadConfig(join(root, file), variables);
  if (loaded.kind === 'invalid') throw new Error(loaded.errors.join('\n'));
  return loaded.config;
}
