/** State in Redis: one server, a cluster, or the master that sentinels watch. Only this file knows ioredis. */

import { Cluster, Redis, type Result } from 'ioredis';
import type { RedisSettings } from '../config/schema.ts';
import type { KeyValues, Reservations, State } from './ports.ts';
import { type AnswerTo, answersWithin } from './redis-answer.ts';
import { createListening } from './redis-listening.ts';
import {
  clusterOptions,
  nodeOptions,
  sentinelOptions,
  sentinelsOptions,
  singleOptions,
  startupNodes,
} from './redis-options.ts';
import { watchRedis } from './redis-watch.ts';

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
  /** One to each of those who tell when another master takes over. */
  readonly newSentinels: readonly (() => Redis)[];
  /** Whether such news means that the client is connected to a master that is none any more. */
  isLeftBehind(news: string): boolean;
}

/**
 * The state in a Redis; not connected before `open`.
 *
 * @param prefix   what every key and every channel begins with
 * @param onChange told once whenever trouble begins, ends, or becomes another; all is well at first
 * @param answerMs how long a command may take; within a data centre Redis answers in one or two
 */
export function createRedisState(
  settings: RedisSettings,
  prefix: string,
  onChange: (trouble: string | undefined) => void = () => {},
  answerMs = 50,
): State {
  const { client, reports, newConnection, newSentinels, isLeftBehind } = wayTo(settings);
  const answerTo = answersWithin(answerMs);
  const named = (name: string) => `${prefix}${name}`;
  const listening = createListening(newConnection);
  const sentinels = newSentinels.map(createListening);
  const watch = watchRedis(reports, onChange);
  const complaints = settings.kind === 'cluster' ? 'node error' : 'error'; // a cluster's own errors do not say why
  client.on('error', () => {}).on(complaints, watch.complain);
  client.on('close', watch.lookNow).on('ready', watch.lookNow);
  const move = (news: string) => {
    if (!isLeftBehind(news)) return;
    client.disconnect(true);
    listening.renew();
  };
  const close = async () => {
    watch.end();
    for (const connection of [listening, ...sentinels]) connection.close();
    client.disconnect();
  };

  return {
    keyValues: keyValuesIn(client, named, answerTo),
    reservations: reservationsIn(client, named, answerTo),
    announcements: {
      publish: async (channel, message) => void (await answerTo(client.publish(named(channel), message))),
      subscribe: (channel, listener) => listening.subscribe(named(channel), listener),
    },
    async open() {
      client.connect().catch(() => {}); // it goes on trying by itself, and complains
      for (const sentinel of sentinels) sentinel.subscribe('+switch-master', move);
      const health = await watch.begin(openMs);
      if (health.kind !== 'unfit') return;
      await close();
      throw new Error(health.trouble);
    },
    trouble: watch.trouble,
    close,
  };
}

function keyValuesIn(client: Client, named: (key: string) => string, answerTo: AnswerTo): KeyValues {
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

function reservationsIn(client: Client, named: (key: string) => string, answerTo: AnswerTo): Reservations {
  return {
    async reserve(bucket, { perSecond, burst }, maxWaitMs) {
      const wait = await answerTo(client.reserveTurn(named(bucket), perSecond, burst, maxWaitMs));
      return wait === null ? undefined : Number(wait);
    },
  };
}

function wayTo(settings: RedisSettings): Way {
  switch (settings.kind) {
    case 'single':
      return { ...wayToMaster(singleOptions(settings)), newSentinels: [], isLeftBehind: () => false };
    case 'sentinels':
      return wayBySentinels(settings);
    case 'cluster':
      return wayToCluster(settings);
  }
}

function wayToMaster(options: ReturnType<typeof singleOptions | typeof sentinelOptions>) {
  const client = new Redis(options);
  return {
    client,
    reports: () => (client.status === 'ready' ? [client.info('memory')] : []),
    newConnection: () => new Redis({ ...options, retryStrategy: () => null }),
  };
}

/** A master that was replaced may serve on for seconds, and what is written to it is lost: so the sentinels are listened to. */
function wayBySentinels(settings: RedisSettings & { kind: 'sentinels' }): Way {
  const way = wayToMaster(sentinelOptions(settings));
  return {
    ...way,
    newSentinels: sentinelsOptions(settings).map((options) => () => new Redis(options)),
    isLeftBehind(news) {
      const [name, , , host, port] = news.split(' '); // name, old host and port, new host and port
      if (name !== settings.name || way.client.status !== 'ready') return false;
      const { remoteAddress, remotePort } = way.client.stream;
      return host !== remoteAddress || Number(port) !== remotePort;
    },
  };
}

function wayToCluster(settings: RedisSettings & { kind: 'cluster' }): Way {
  const startup = startupNodes(settings);
  const client = new Cluster(startup, clusterOptions(settings));
  let owners: readonly string[] = [];
  client.on('refresh', () => {
    owners = client.nodes('master').map(addressOf);
  });
  let turn = 0;
  return {
    client,
    reports() {
      const masters = client.nodes('master');
      const lost = owners.filter((owner) => !masters.map(addressOf).includes(owner));
      return [
        ...lost.map(unreached),
        ...masters.flatMap((node) => [node.info('memory'), node.cluster('INFO')]),
      ];
    },
    newConnection() {
      const known = client.nodes().map(({ options: { host, port } }) => ({ host, port }));
      const nodes = known.length > 0 ? known : startup;
      return new Redis({
        ...nodeOptions(settings),
        ...nodes[turn++ % nodes.length],
        retryStrategy: () => null,
      });
    },
    newSentinels: [],
    isLeftBehind: () => false,
  };
}

const addressOf = ({ options: { host, port } }: Redis) => `${host}:${port}`;

/** The client drops a node that it has lost, although slots belong to it, and takes it up again once a second. */
async function unreached(address: string): Promise<never> {
  throw new Error(`no connection to ${address}`);
}
