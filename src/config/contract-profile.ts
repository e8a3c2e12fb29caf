/** Reads the profile of a bank: its own additions to the standard, and its restrictions. */

import { type Profile, parseProfile } from '../contract/profile.ts';
import { readYaml } from './yaml-text.ts';

/** The profile in a YAML file, or what is wrong with the file: one text each. */
export function readProfile(
  content: Buffer,
): { readonly profile: Profile } | { readonly errors: readonly string[] } {
  const yaml = readYaml(content.toString());
  if (yaml.errors.length > 0)
    return { errors: yaml.errors.map(({ line, message }) => `line ${line}: ${message}`) };
  const parsed = parseProfile(yaml.tree);
  if ('profile' in parsed) return parsed;
  return { errors: parsed.errors.map(({ path, why }) => (path === '' ? why : `${path}: ${why}`)) };
}
