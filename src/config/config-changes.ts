/** Compares two configurations: which settings a reload changes, and which need a restart. */

import { isDeepStrictEqual } from 'node:util';
import { settingsInFileSyntax } from './file-syntax.ts';
import { isMapping, type SettingPath } from './object-path.ts';
import { isSecret, maskText, secretMask } from './redact.ts';
import { listenUrl, localErrorPage } from './resolve-defaults.ts';
import type { Config } from './schema.ts';
import { globalSetting } from './setting-orders.ts';

/** A setting with another effective value than before. */
export interface ConfigChange {
  /** Such as `deadlines.write`, or `clients.shop.quota.rate`: entries of a list have their names. */
  readonly setting: string;
  /** As in the file, with secrets masked; `null` if the setting does not exist. */
  readonly from: string | null;
  readonly to: string | null;
}

export interface ReloadReport {
  readonly changes: readonly ConfigChange[];
  /** Settings of the new configuration that take effect after a restart only. */
  readonly restartRequired: readonly ConfigChange[];
}

/** The result of a reload; the errors are those of the new configuration, one line each. */
export type ReloadResult =
  | ({ readonly kind: 'applied' } & ReloadReport)
  | { readonly kind: 'refused'; readonly errors: readonly string[] };

/** Who asks for a reload. */
export type ReloadRequest =
  | { readonly by: 'signal'; readonly signal: string }
  | { readonly by: 'operator'; readonly operator: string; readonly reason?: string | undefined };

/** A line for operators: `deadlines.write: 35s -> 20s`. */
export function describeChange({ setting, from, to }: ConfigChange): string {
  if (setting === 'environments.active')
    return `${setting}: ${from} -> ${to} (used only if the state is new; penstock environment use switches)`;
  if (from === to) return `${setting}: changed (secret)`;
  if (from === null) return isEntry(to) ? `${setting}: added` : `${setting}: (not set) -> ${to}`;
  if (to === null) return isEntry(from) ? `${setting}: removed` : `${setting}: ${from} -> (not set)`;
  return `${setting}: ${from} -> ${to}`;
}

/** What a reload of `next` would change in a gateway that was started with `current`. */
export function compareConfigs(current: Config, next: Config): ReloadReport {
  const effective = applicableOnReload(next, current);
  return { changes: configChanges(current, effective), restartRequired: configChanges(effective, next) };
}

/** Every setting whose effective value differs. An environment that follows a global setting is not listed as well. */
export function configChanges(previous: Config, next: Config): readonly ConfigChange[] {
  const changes = differences([], settingsInFileSyntax(previous), settingsInFileSyntax(next));
  return changes.filter(
    ({ setting, from, to }) =>
      globalSetting(setting) === setting ||
      !changes.some((one) => one.setting === globalSetting(setting) && one.from === from && one.to === to),
  );
}

/**
 * The new configuration as a reload applies it. The settings that need a restart keep their values of the start, because the
 * listeners, the shared state, the log and tracing were created with them.
 */
export function applicableOnReload(next: Config, start: Config): Config {
  const { host, port, maxConnections, reusePort, tls } = start.listen;
  const isDerived = next.listen.publicUrl === listenUrl(next.listen);
  const publicUrl = isDerived ? listenUrl(start.listen) : next.listen.publicUrl;
  const isLocalErrorPage = next.listen.errorPageUrl === localErrorPage(next.listen.publicUrl, next.admin);
  const errorPageUrl = isLocalErrorPage ? localErrorPage(publicUrl, start.admin) : next.listen.errorPageUrl;
  const isDerivedAdmin = next.admin.publicUrl === listenUrl(next.admin);
  return {
    ...next,
    listen: { ...next.listen, host, port, maxConnections, reusePort, tls, publicUrl, errorPageUrl },
    admin: {
      ...next.admin,
      host: start.admin.host,
      port: start.admin.port,
      tls: start.admin.tls,
      publicUrl: isDerivedAdmin ? listenUrl(start.admin) : next.admin.publicUrl,
    },
    state: start.state,
    payments: start.payments,
    notifications: { ...next.notifications, listen: start.notifications.listen },
    log: start.log,
    tracing: start.tracing,
  };
}

/** The sections and settings that `applicableOnReload` does not change, for the documentation. */
export const restartSettings: readonly string[] = [
  'listen.host',
  'listen.port',
  'listen.maxConnections',
  'listen.reusePort',
  'listen.tls',
  'admin.host',
  'admin.port',
  'admin.tls',
  'state',
  'payments',
  'notifications.listen',
  'log',
  'tracing',
];

function differences(path: SettingPath, before: unknown, after: unknown): readonly ConfigChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  const [from, to] = areKeyed(before, after) ? [byName(before), byName(after)] : [before, after];
  if (!isMapping(from) || !isMapping(to))
    return [{ setting: path.join('.'), from: textOf(from, path), to: textOf(to, path) }];
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key) =>
    differences([...path, key], from[key], to[key]),
  );
}

/** Lists of entries with names, such as clients: a change of their order changes nothing. */
const areKeyed = (one: unknown, other: unknown): boolean =>
  [one, other].every(
    (list) => Array.isArray(list) && list.every((entry) => isMapping(entry) && 'name' in entry),
  );

const byName = (list: unknown) =>
  Array.isArray(list) ? Object.fromEntries(list.map(({ name, ...entry }) => [name, entry])) : list;

const isEntry = (text: string | null) => text?.startsWith('{');

function textOf(value: unknown, path: SettingPath): string | null {
  if (value === undefined) return null;
  if (isSecret(path, value)) return secretMask;
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, path)).join(', ')}]`;
  if (!isMapping(value)) return maskText(String(value));
  const entries = Object.entries(value).map(([key, inner]) => `${key}: ${textOf(inner, [...path, key])}`);
  return `{ ${entries.join(', ')} }`;
}
