/** A hash by which operators see whether instances run with the same configuration. */

import { createHash } from 'node:crypto';
import { isMapping } from './object-path.ts';
import { redactConfig } from './redact.ts';
import type { Config } from './schema.ts';

/** Settings in which the instances of one installation may differ: addresses, and files of one machine. */
export const settingsOfInstance: ReadonlySet<string> = new Set([
  'listen.host',
  'listen.port',
  'listen.publicUrl',
  'listen.errorPageUrl',
  'listen.reusePort',
  'admin.host',
  'admin.port',
  'admin.publicUrl',
  'admin.hosts',
  'notifications.listen.host',
  'notifications.listen.port',
  'state.file',
  'log.format',
  'log.level',
]);

/**
 * SHA-256 of all effective settings, without secrets and `settingsOfInstance`. Keys, and entries of a list that have names, are in the
 * order of their names: an environment variable and a line of the file give the same hash.
 */
export function configurationHash(config: Config): string {
  return createHash('sha256')
    .update(JSON.stringify(ordered(redactConfig(config), '')))
    .digest('hex');
}

function ordered(value: unknown, path: string): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => ordered(item, path));
    return value.every((item) => isMapping(item) && 'name' in item) ? items.toSorted(byText) : items;
  }
  if (!isMapping(value)) return value;
  return Object.entries(value)
    .filter(([key]) => !settingsOfInstance.has(path + key))
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([key, inner]) => [key, ordered(inner, `${path}${key}.`)]);
}

const byText = (one: unknown, other: unknown) => JSON.stringify(one).localeCompare(JSON.stringify(other));
