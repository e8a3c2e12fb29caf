/** What two settings say against each other, though each is fine alone. */

import type { ReadFile } from '../../certificates/file-watcher.ts';
import type { SettingPath } from '../object-path.ts';
import type { Config } from '../schema.ts';

/** A contradiction, told at the setting that should change. */
export interface CrossCheckError {
  readonly path: SettingPath;
  /** The other settings that take part: if one of them is itself at fault, this is not worth saying. */
  readonly against: readonly SettingPath[];
  readonly message: string;
}

/** What is known beside the configuration itself. */
export interface CrossCheckContext {
  /** Does the environment variable for the operator "admin" hold a token? */
  readonly adminToken: boolean;
  /** The environments that were written down, those included that cannot be read. */
  readonly environmentNames: readonly string[];
  /** Was this setting given by an environment variable? */
  isFromVariable(path: SettingPath): boolean;
  /** Opens files that settings name; without it nothing is said about them. @throws Error if one cannot be read */
  readonly read?: ReadFile | undefined;
}

/** Looks for one kind of contradiction. */
export type CrossCheck = (config: Config, circumstances: CrossCheckContext) => readonly CrossCheckError[];

/** The entries whose key was there before, with the index of its first bearer. */
export function duplicates<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string | undefined,
): readonly { readonly index: number; readonly first: number }[] {
  const keys = items.map(keyOf);
  return keys.flatMap((key, index) => {
    const first = keys.indexOf(key);
    return key !== undefined && first < index ? [{ index, first }] : [];
  });
}
