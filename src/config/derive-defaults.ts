/**
 * Derives the defaults that follow other settings (ADR 74). A default changes only if it contradicts a setting that the
 * user wrote, in the file or as an environment variable:
 *
 * | setting | becomes | from |
 * |---|---|---|
 * | each pair in setting-orders.ts | a part or a multiple | the other setting of the pair |
 * | `admin.port`, `listen.port`, `notifications.listen.port` | the next port | another port, if both would share one address |
 * | `listen.tls.clientCertificate` | `optional` | a client with `certificateSha256`, if `listen.tls.clientCaFile` is set |
 * | `admin.tls.clientCertificate` | `optional` | a fingerprint in `admin.trustedProxies`, if `admin.tls.clientCaFile` is set |
 * | `listen.publicUrl` | the address of the listener | `listen.host`, `listen.port`, `listen.tls` |
 */

import { formatPath } from './config-errors.ts';
import { type SettingPath, valueAt } from './object-path.ts';
import { listenUrl, shareAddress } from './resolve-defaults.ts';
import type { Settings } from './schema.ts';
import {
  globalSetting,
  isInOrder,
  longestDeadline,
  ordersOfEnvironments,
  type SettingOrder,
  settingOrders,
} from './setting-orders.ts';
import { durations, parseQuantity } from './units.ts';
import { fingerprintDigits } from './values.ts';

/** A default that follows other settings. */
export interface DerivedDefault {
  readonly path: readonly string[];
  /** As users write it. */
  readonly value: string | number;
  /** The settings that it follows, each with its value: `deadlines.write is 900ms`. */
  readonly because: readonly string[];
}

type IsWritten = (path: SettingPath) => boolean;

/** A line for operators: `derived: deadlines.connect 450ms (deadlines.write is 900ms)`. */
export const describeDerived = ({ path, value, because }: DerivedDefault): string =>
  `derived: ${formatPath(path)} ${value} (${because.join(', ')})`;

/**
 * @param settings  as parsed: what the user did not write has the default of the schema
 * @returns the defaults that differ from those of the schema
 */
export function deriveDefaults(settings: Settings, isWritten: IsWritten): readonly DerivedDefault[] {
  const ports = derivePorts(settings, isWritten);
  return [
    ...deriveFromOrders(settings, isWritten),
    ...ports,
    ...derivePublicUrl(settings, isWritten, ports),
    ...deriveClientCertificate(settings, isWritten),
    ...deriveProxyCertificate(settings, isWritten),
  ];
}

/** A value that a setting must have because of another one. */
interface Bound {
  readonly value: number;
  readonly order: SettingOrder;
  readonly because: string;
}

/** Resolves every setting of the orders. A default that contradicts a written setting becomes another value. */
function deriveFromOrders(settings: Settings, isWritten: IsWritten): readonly DerivedDefault[] {
  const orders = [...settingOrders, ...ordersOfEnvironments(environmentNamesOf(settings))];
  const resolved = new Map<string, number>();
  const derived: DerivedDefault[] = [];

  /** The setting whose value applies: itself if it is written or derived; otherwise the global one, which an environment follows. */
  const origin = (setting: string): string =>
    isWritten(setting.split('.')) || derived.some(({ path }) => path.join('.') === setting)
      ? setting
      : globalSetting(setting);

  /** The value that applies to a setting. */
  function resolve(setting: string): number {
    const value = resolved.get(setting) ?? parsedOrDerived(setting);
    resolved.set(setting, value);
    return value;
  }

  function parsedOrDerived(setting: string): number {
    const from = origin(setting);
    if (isWritten(from.split('.'))) return Number(valueAt(settings, from.split('.')));
    return derive(setting, from === setting ? Number(valueAt(settings, from.split('.'))) : resolve(from));
  }

  /** Raises the default above the lesser settings that the user wrote, then lowers it below the greater settings. */
  function derive(setting: string, fallback: number): number {
    const raised = lowerBounds(setting, fallback).toSorted((one, other) => other.value - one.value)[0];
    const wanted = raised?.value ?? fallback;
    const lowered = upperBounds(setting, wanted).toSorted((one, other) => one.value - other.value)[0];
    const bound = lowered ?? raised;
    if (!bound) return fallback;
    derived.push({
      path: setting.split('.'),
      value: bound.order.asWritten(bound.value),
      because: [raised, lowered].flatMap((one) => one?.because ?? []),
    });
    return bound.value;
  }

  const lowerBounds = (setting: string, value: number): readonly Bound[] =>
    orders
      .filter(({ lesser, greater }) => greater === setting && isWritten(origin(lesser).split('.')))
      .filter((order) => !isInOrder(order, resolve(order.lesser), value))
      .flatMap((order) => {
        if (order.times === undefined) return [];
        const lesser = resolve(order.lesser);
        const because = `${origin(order.lesser)} is ${order.asWritten(lesser)}`;
        return [{ value: Math.min(lesser * order.times, maximumOf(setting)), order, because }];
      });

  const upperBounds = (setting: string, value: number): readonly Bound[] =>
    orders
      .filter(({ lesser }) => lesser === setting)
      .filter((order) => !isInOrder(order, value, resolve(order.greater)))
      .flatMap((order) => {
        if (order.part === undefined) return [];
        const greater = resolve(order.greater);
        const because = `${origin(order.greater)} is ${order.asWritten(greater)}`;
        return [{ value: Math.floor(greater * order.part), order, because }];
      });

  for (const { lesser, greater } of orders) {
    resolve(greater);
    resolve(lesser);
  }
  return derived;
}

const environmentNamesOf = ({ environments }: Settings) =>
  Object.keys(environments).filter((name) => name !== 'active');

const longestDeadlineMs = parseQuantity(durations, longestDeadline) ?? Infinity;

const maximumOf = (setting: string) =>
  globalSetting(setting).startsWith('deadlines.') ? longestDeadlineMs : Infinity;

/** A default port that another listener has becomes the next one. The cross-checks compare ports that are written. */
function derivePorts(
  { listen, admin, notifications }: Settings,
  isWritten: IsWritten,
): readonly DerivedDefault[] {
  const listeners = [
    { path: ['listen', 'port'], address: listen },
    { path: ['admin', 'port'], address: admin },
    ...(notifications.listen
      ? [{ path: ['notifications', 'listen', 'port'], address: notifications.listen }]
      : []),
  ];
  const taken = listeners.filter(({ path }) => isWritten(path));
  return listeners
    .filter(({ path }) => !isWritten(path))
    .flatMap(({ path, address }) => {
      const because: string[] = [];
      let { port } = address;
      for (;;) {
        const other = taken.find((one) => shareAddress(one.address, { ...address, port }));
        if (!other) break;
        because.push(`${formatPath(other.path)} is ${other.address.port}`);
        port += 1;
      }
      taken.push({ path, address: { ...address, port } });
      return because.length === 0 ? [] : [{ path, value: port, because }];
    });
}

const usualPublicUrl = 'http://127.0.0.1:8080';

/** Not for port 0: the system chooses the port when the gateway starts. */
function derivePublicUrl(
  { listen }: Settings,
  isWritten: IsWritten,
  derived: readonly DerivedDefault[],
): readonly DerivedDefault[] {
  const moved = derived.find(({ path }) => path[0] === 'listen');
  const port = moved ? Number(moved.value) : listen.port;
  const because = [
    ...(isWritten(['listen', 'host']) ? [`listen.host is ${listen.host}`] : []),
    ...(isWritten(['listen', 'port']) || moved ? [`listen.port is ${port}`] : []),
    ...(isWritten(['listen', 'tls']) ? ['listen.tls is set'] : []),
  ];
  const value = listenUrl({ ...listen, port });
  if (isWritten(['listen', 'publicUrl']) || port === 0 || value === usualPublicUrl) return [];
  return [{ path: ['listen', 'publicUrl'], value, because }];
}

/** Without an authority, certificates prove nothing: the cross-checks then report the client. */
function deriveClientCertificate(
  { listen: { tls }, clients }: Settings,
  isWritten: IsWritten,
): readonly DerivedDefault[] {
  const path = ['listen', 'tls', 'clientCertificate'];
  const index = clients.findIndex(({ certificateSha256 }) => certificateSha256 !== undefined);
  if (tls?.clientCaFile === undefined || index < 0 || isWritten(path)) return [];
  return [{ path, value: 'optional', because: [`clients[${index}].certificateSha256 is set`] }];
}

function deriveProxyCertificate(
  { admin: { tls, trustedProxies } }: Settings,
  isWritten: IsWritten,
): readonly DerivedDefault[] {
  const path = ['admin', 'tls', 'clientCertificate'];
  const index = trustedProxies.findIndex((proxy) => fingerprintDigits(proxy) !== undefined);
  if (tls?.clientCaFile === undefined || index < 0 || isWritten(path)) return [];
  return [{ path, value: 'optional', because: [`admin.trustedProxies[${index}] is a fingerprint`] }];
}
