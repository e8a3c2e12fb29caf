/** A hash by which operators see whether instances run with the same configuration. */

import { createHash } from 'node:crypto';
import { isMapping } from './object-path.ts';
import { redactConfig } from './redact.ts';
import type { Config } from './schema.ts';

/** Settings in which the instances of one installation may differ: addresses, and files of one machine. */
const settingsOfInstance: ReadonlySet<string> = new Set([
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
 * SHA-256 of all effective settings, without secrets and `settingsOfInstance`. The order of keys and of list entries does not
 * matter: instances may get them from files and environment variables.
 */
export function configurationHash(config: Config): string {
  return createHash('sha256')
    .update(JSON.stringify(ordered(redactConfig(config), '')))
    .digest('hex');
}

function ordered(value: unknown, path: string): unknown {
  if (Array.isArray(value)) {
    const nameOf = (item: unknown) => String(isMapping(item) ? item.name : item);
    const items = value.toSorted((one, other) => nameOf(one).localeCompare(nameOf(other)));
    return items.map((item) => ordered(item, path));
  }
  if (!isMapping(value)) return value;
  return Object.entries(value)
    .filter(([key]) => !settingsOfInstance.has(path + key))
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([key, inner]) => [key, ordered(inner, `${path}${key}.`)]);
}
