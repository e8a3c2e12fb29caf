/** Reads the file of a bank's profile, and names the line of each mistake. */

import { type Profile, type ProfileError, parseProfile } from '../contract/profile.ts';
import { formatPath } from './config-errors.ts';
import { closestName } from './did-you-mean.ts';
import { readYaml } from './yaml-text.ts';

/**
 * Parses a YAML file.
 *
 * @param file its name, for the errors, such as `FILE:LINE path: what to change`
 */
export function readProfile(
  content: Buffer,
  file: string,
): { readonly profile: Profile } | { readonly errors: readonly string[] } {
  const yaml = readYaml(content.toString());
  const parsed = yaml.errors.length > 0 ? undefined : parseProfile(yaml.tree);
  if (parsed && 'profile' in parsed) return parsed;
  const mistakes = parsed
    ? parsed.errors.map((error) => ({ line: yaml.lineOf(error.path), message: describe(error) }))
    : yaml.errors;
  const byLine = mistakes.toSorted((one, other) => one.line - other.line);
  return { errors: byLine.map(({ line, message }) => `${file}:${line} ${message}`) };
}

function describe({ path, why, unknown }: ProfileError): string {
  const similar = unknown && closestName(unknown.name, unknown.known);
  const hint = similar === undefined ? '' : ` (did you mean ${similar}?)`;
  return `${path.length === 0 ? '' : `${formatPath(path)}: `}${why}${hint}`;
}
