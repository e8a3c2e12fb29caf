/** Options of the Redis connections. An outage is an error at once, not a wait, and no command is sent twice. */

import { unescape as percentDecode } from 'node:querystring';
import type { Credentials } from '../certificates/tls-credentials.ts';
import type { RedisSettings } from '../config/schema.ts';
import { hostWithoutBrackets } from '../config/values.ts';

/** The addresses, and the TLS options for `rediss:` URLs. */
export type RedisConnectionSettings = RedisSettings & { readonly tls?: Credentials };

type Settings<Kind extends RedisSettings['kind']> = RedisConnectionSettings & { readonly kind: Kind };

/** Short at first, because an outage is usually a restart; at most half a second, to notice the end of an outage soon. */
const retryDelayMs = (attempt: number) => Math.min(50 * attempt, 500);

/** @param timeoutMs `state.timeout` */
const connectionOptions = (timeoutMs: number) => ({
  lazyConnect: true,
  connectTimeout: Math.max(500, timeoutMs),
  commandTimeout: handshakeTimeoutMs(timeoutMs),
  socketTimeout: 2 * handshakeTimeoutMs(timeoutMs), // from a command to the next byte, not between commands, so idle connections stay open
  disconnectTimeout: 100, // a frozen server does not close its end
  keepAlive: 10_000,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  maxLoadingRetryTime: 500,
  autoResendUnfulfilledCommands: false, // otherwise a write issued before an outage takes effect after it
  autoResubscribe: false, // redis-subscriber.ts does it, because the next connection may lead to another node
  retryStrategy: retryDelayMs,
});

/** For the handshake with a frozen server. Longer than `state.timeout`, which redis-batch.ts applies to other commands. */
const handshakeTimeoutMs = (timeoutMs: number) => Math.max(500, 2 * timeoutMs);

export const singleOptions = ({ url, tls }: Settings<'single'>, timeoutMs: number) => ({
  ...connectionOptions(timeoutMs),
  ...hostAndPort(url),
  ...credentialsIn(url, tls),
  db: databaseIn(url),
});

/** For the master that sentinels monitor. The credentials of the first sentinel's address apply to all servers. */
export function sentinelOptions(settings: Settings<'sentinels'>, timeoutMs: number) {
  const { urls, name } = settings;
  const credentials = credentialsIn(urls[0], settings.tls);
  const { username, password, tls } = credentials;
  return {
    ...connectionOptions(timeoutMs),
    ...credentials,
    db: databaseIn(urls[0]),
    name,
    sentinels: urls.map((url) => hostAndPort(url, 26379)),
    sentinelRetryStrategy: retryDelayMs,
    sentinelCommandTimeout: handshakeTimeoutMs(timeoutMs),
    ...(username && { sentinelUsername: username }),
    ...(password && { sentinelPassword: password }),
    ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}

/** For a connection to each sentinel itself, which does not reconnect. */
export const sentinelSubscriberOptions = ({ urls, tls }: Settings<'sentinels'>, timeoutMs: number) =>
  urls.map((url) => ({
    ...connectionOptions(timeoutMs),
    ...hostAndPort(url, 26379),
    ...credentialsIn(urls[0], tls),
    retryStrategy: () => null,
  }));

/** For a cluster. Commands are not retried: a retry would complete after the caller has given up. */
export const clusterOptions = (settings: Settings<'cluster'>, timeoutMs: number) => ({
  lazyConnect: true,
  redisOptions: nodeOptions(settings, timeoutMs),
  enableOfflineQueue: false, // not in the options of the nodes, which ioredis overwrites
  clusterRetryStrategy: retryDelayMs,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  maxRedirections: 4,
  slotsRefreshTimeout: handshakeTimeoutMs(timeoutMs),
  dnsLookup: (name: string, found: (error: null, address: string) => void) => found(null, name), // certificates contain names
});

/** For each node of a cluster, with the credentials of the first address. */
export function nodeOptions({ urls, tls }: Settings<'cluster'>, timeoutMs: number) {
  const { retryStrategy: _retry, enableOfflineQueue: _queue, ...rest } = connectionOptions(timeoutMs);
  return { ...rest, ...credentialsIn(urls[0], tls) };
}

/** The configured nodes of a cluster. */
export const startupNodes = ({ urls }: Settings<'cluster'>) => urls.map((url) => hostAndPort(url));

function hostAndPort(address: string, defaultPort = 6379) {
  const { hostname, port } = new URL(address);
  return { host: hostWithoutBrackets(hostname), port: Number(port || defaultPort) };
}

function credentialsIn(address = '', tls: Credentials = {}) {
  const url = URL.parse(address);
  return {
    ...(url?.username && { username: percentDecode(url.username) }),
    ...(url?.password && { password: percentDecode(url.password) }),
    ...(url?.protocol === 'rediss:' && { tls }),
  };
}

const databaseIn = (address = '') => Number(URL.parse(address)?.pathname.slice(1) ?? 0);
