/** State in Redis: one server, a cluster, or the master that sentinels watch. Only this file knows ioredis. */

import { Cluster, Redis, type Result } from 'ioredis';
import type { RedisSettings } from '../config/schema.ts';
import type { KeyValues, Reservations, State } from './ports.ts';
import { answerTo, reasonOf } from './redis-answer.ts';
import { watchHealth } from './redis-health.ts';
import { createListening } from './redis-listening.ts';
import {
  clusterOptions,
  nodeOptions,
  sentinelOptions,
  singleOptions,
  startupNodes,
} from './redis-options.ts';

/** How long `open` waits for a Redis that does not answer. */
const openMs = 1000;

type Client = Redis | Cluster;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** @returns 1 if the value was replaced, else 0 */
    replaceIfUnchanged(
      key: string,
      expected: string,
      value: string,
      ...ttlMs: number[]
    ): Result<number, Context>;
    /** @returns milliseconds to wait, as text, or `null` if they would be too many */
    reserveTurn(
      key: string,
      perSecond: number,
      burst: number,
      maxWaitMs: number,
    ): Result<string | null, Context>;
  }
}

/** A way to Redis. */
interface Way {
  readonly client: Client;
  /** Asks all nodes that hold values about themselves. */
  reports(): readonly Promise<string>[];
  /** A connection to any node, which does not come back by itself. */
  newConnection(): Redis;
}

/**
 * The state in a Redis; not connected before `open`.
 *
 * @param prefix   what every key and every channel begins with
 * @param onChange told once whenever trouble begins, ends, or becomes another; all is well at first
 */
export function createRedisState(
  settings: RedisSettings,
  prefix: string,
  onChange: (trouble: string | undefined) => void = () => {},
): State {
  const { client, reports, newConnection } = wayTo(settings);
  const named = (name: string) => `${prefix}${name}`;
  const listening = createListening(newConnection);
  let complaint: string | undefined;
  const watch = watchHealth({ reports, complaint: () => complaint }, (health) =>
    onChange(health.kind === 'well' ? undefined : health.trouble),
  );
  const complain = (error: unknown) => {
    complaint = reasonOf(error);
  };
  client.on('error', complain).on('node error', complain);
  client.on('close', watch.lookNow).on('ready', () => {
    complaint = undefined;
    watch.lookNow();
  });
  const close = async () => {
    watch.end();
    listening.close();
    client.disconnect();
  };

  return {
    keyValues: keyValuesIn(client, named),
    reservations: reservationsIn(client, named),
    announcements: {
      publish: async (channel, message) => void (await answerTo(client.publish(named(channel), message))),
      subscribe: (channel, listener) => listening.subscribe(named(channel), listener),
    },
    async open() {
      client.connect().catch(complain);
      const health = await watch.begin(openMs);
      if (health.kind !== 'unfit') return;
      await close();
      throw new Error(health.trouble);
    },
    trouble() {
      const health = watch.health();
      return health.kind === 'well' ? undefined : health.trouble;
    },
    close,
  };
}

function keyValuesIn(client: Client, named: (key: string) => string): KeyValues {
  return {
    read: async (key) => (await answerTo(client.get(named(key)))) ?? undefined,
    async write(key, value, ttlMs) {
      const set =
        ttlMs === undefined
          ? client.set(named(key), value)
          : client.set(named(key), value, 'PX', wholeMs(ttlMs));
      await answerTo(set);
    },
    async writeIfAbsent(key, value, ttlMs) {
      const set =
        ttlMs === undefined
          ? client.set(named(key), value, 'NX')
          : client.set(named(key), value, 'PX', wholeMs(ttlMs), 'NX');
      return (await answerTo(set)) === 'OK';
    },
    async replace(key, expected, value, ttlMs) {
      const ttl = ttlMs === undefined ? [] : [wholeMs(ttlMs)];
      return (await answerTo(client.replaceIfUnchanged(named(key), expected, value, ...ttl))) === 1;
    },
    remove: async (key) => void (await answerTo(client.del(named(key)))),
  };
}

/** Redis counts whole milliseconds, and takes no value that lives for none. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

function reservationsIn(client: Client, named: (key: string) => string): Reservations {
  return {
    async reserve(bucket, { perSecond, burst }, maxWaitMs) {
      const wait = await answerTo(client.reserveTurn(named(bucket), perSecond, burst, maxWaitMs));
      return wait === null ? undefined : Number(wait);
    },
  };
}

function wayTo(settings: RedisSettings): Way {
  if (settings.kind === 'cluster') return wayToCluster(settings);
  const options = settings.kind === 'single' ? singleOptions(settings) : sentinelOptions(settings);
  const client = new Redis(options);
  return {
    client,
    reports: () => (client.status === 'ready' ? [client.info('memory')] : []),
    newConnection: () => new Redis({ ...options, retryStrategy: () => null }),
  };
}

function wayToCluster(settings: RedisSettings & { kind: 'cluster' }): Way {
  const startup = startupNodes(settings);
  const client = new Cluster(startup, clusterOptions(settings));
  let turn = 0;
  return {
    client,
    reports: () => client.nodes('master').flatMap((node) => [node.info('memory'), node.cluster('INFO')]),
    newConnection() {
      const known = client.nodes().map(({ options: { host, port } }) => ({ host, port }));
      const nodes = known.length > 0 ? known : startup;
      const node = nodes[turn++ % nodes.length];
      return new Redis({ ...nodeOptions(settings), ...node, retryStrategy: () => null });
    },
  };
}
