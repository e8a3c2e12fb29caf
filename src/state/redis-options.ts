/** How Redis is spoken to: an outage is to be an error at once, not a wait, and nothing is to be done twice. */

import { unescape as decoded } from 'node:querystring';
import type { RedisSettings } from '../config/schema.ts';
import { hostWithoutBrackets } from '../config/values.ts';
import { scripts } from './redis-scripts.ts';

/** Soon at first, for an outage is mostly a restart; then twice a second, for it is to be noticed when it ends. */
const retryDelayMs = (attempt: number) => Math.min(50 * attempt, 500);

/** A frozen server accepts connections and then says nothing, so the greeting has a bound as well. */
const connectionOptions = {
  lazyConnect: true,
  connectTimeout: 500,
  commandTimeout: 500, // of the greeting; the gateway's own commands have a closer bound (redis-answer.ts)
  socketTimeout: 1000, // from a command to the next byte, not between commands: an idle connection stays
  disconnectTimeout: 100, // how long a frozen server may keep a connection that we have ended
  keepAlive: 10_000,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  maxLoadingRetryTime: 500,
  autoResendUnfulfilledCommands: false, // else a write issued before an outage is done after it
  autoResubscribe: false, // redis-listening.ts does it, whichever node is next
  retryStrategy: retryDelayMs,
  scripts,
};

/** Where a server listens. */
function hostAndPort(address: string, defaultPort = 6379) {
  const { hostname, port } = new URL(address);
  return { host: hostWithoutBrackets(hostname), port: Number(port || defaultPort) };
}

/** What a server is told about who comes, and in which way. */
function credentialsIn(address = '') {
  const url = URL.parse(address);
  return {
    ...(url?.username && { username: decoded(url.username) }),
    ...(url?.password && { password: decoded(url.password) }),
    ...(url?.protocol === 'rediss:' && { tls: {} }),
  };
}

const databaseIn = (address = '') => Number(URL.parse(address)?.pathname.slice(1) ?? 0);

/** For one Redis. */
export const singleOptions = ({ url }: RedisSettings & { kind: 'single' }) => ({
  ...connectionOptions,
  ...hostAndPort(url),
  ...credentialsIn(url),
  db: databaseIn(url),
});

/** For the master that sentinels watch: it and they are told what the first sentinel's address says of who comes. */
export function sentinelOptions({ urls, name }: RedisSettings & { kind: 'sentinels' }) {
  const credentials = credentialsIn(urls[0]);
  const { username, password, tls } = credentials;
  return {
    ...connectionOptions,
    ...credentials,
    db: databaseIn(urls[0]),
    name,
    sentinels: urls.map((url) => hostAndPort(url, 26379)),
    sentinelRetryStrategy: retryDelayMs,
    sentinelCommandTimeout: 500,
    ...(username && { sentinelUsername: username }),
    ...(password && { sentinelPassword: password }),
    ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}

/** For a connection to each of the sentinels themselves, which does not come back by itself. */
export const sentinelSubscriberOptions = ({ urls }: RedisSettings & { kind: 'sentinels' }) =>
  urls.map((url) => ({
    ...connectionOptions,
    ...hostAndPort(url, 26379),
    ...credentialsIn(urls[0]),
    retryStrategy: () => null,
  }));

/** For each node of a cluster, with the credentials of the first address. */
export function nodeOptions({ urls }: RedisSettings & { kind: 'cluster' }) {
  const { retryStrategy: _retry, enableOfflineQueue: _queue, ...rest } = connectionOptions;
  return { ...rest, ...credentialsIn(urls[0]) };
}

/** For a cluster. A command is not tried again later: it would come after its answer was given up. */
export const clusterOptions = (settings: RedisSettings & { kind: 'cluster' }) => ({
  lazyConnect: true,
  scripts,
  redisOptions: nodeOptions(settings),
  enableOfflineQueue: false, // must stand here: the nodes' own is always on
  clusterRetryStrategy: retryDelayMs,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  maxRedirections: 4,
  slotsRefreshTimeout: 500,
  dnsLookup: (name: string, found: (error: null, address: string) => void) => found(null, name), // certificates bear names
});

/** Where the nodes of a cluster are that the settings know. */
export const startupNodes = ({ urls }: RedisSettings & { kind: 'cluster' }) =>
  urls.map((url) => hostAndPort(url));
