/** State in Redis: one server, a cluster, or the master that sentinels watch. Only this file knows ioredis. */

import type { Writable } from 'node:stream';
import { Cluster, Redis, type Result } from 'ioredis';
import type { RedisSettings } from '../config/schema.ts';
import type { BucketRate, KeyValues, Sets, State, TokenBuckets } from './ports.ts';
import {
  type Command,
  corkPerTick,
  createCommandBatcher,
  createDeadline,
  type ExecuteBatch,
  type SendCommand,
} from './redis-batch.ts';
import { createRedisMonitor } from './redis-monitor.ts';
import {
  clusterOptions,
  nodeOptions,
  sentinelOptions,
  sentinelSubscriberOptions,
  singleOptions,
  startupNodes,
} from './redis-options.ts';
import { createRedisSubscriber } from './redis-subscriber.ts';
import { takeResultOf } from './token-bucket.ts';

/** How long a Redis that has not answered in time is left alone. Milliseconds. */
const silenceMs = 250;
/** How long `open` waits for a Redis that does not answer. */
const openMs = 1000;

type Client = Redis | Cluster;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** @returns of each command its answer, or an error */
    carryOut(keys: number, ...keysAndWords: Command['words'][number][]): Result<unknown[], Context>;
  }
}

/** A way to Redis. */
interface RedisTopology {
  readonly client: Client;
  readonly carryOut: ExecuteBatch;
  /** How many commands go by it in one question: 1 in a cluster, whose nodes have keys of their own. */
  readonly mostTogether: number;
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
 * The state in a Redis; not connected before `open`, or before somebody listens.
 *
 * @param prefix   what every key and every channel begins with
 * @param onChange told once whenever trouble begins, ends, or becomes another; all is well at first
 * @param answerMs how long a command may take, at most 500; within a data centre Redis answers in one or two
 */
export function createRedisState(
  settings: RedisSettings,
  prefix: string,
  onChange: (trouble: string | undefined) => void = () => {},
  answerMs = 50,
): State {
  const way = createTopology(settings);
  const { client } = way;
  const answerTo = createDeadline(answerMs, settings.kind === 'cluster' ? 0 : silenceMs);
  const ask = createCommandBatcher(way.carryOut, answerTo, way.mostTogether);
  const named = (name: string) => `${prefix}${name}`;
  const bytesOf = (name: string) => answerTo(() => client.getBuffer(name));
  const ears = createSubscribers(way);
  const takesCommands = () => client.status === 'ready';
  const watch = createRedisMonitor({ reports: way.reports, takesCommands }, onChange);
  const complaints = settings.kind === 'cluster' ? 'node error' : 'error'; // a cluster's own errors do not say why
  client.on('error', () => {}).on(complaints, watch.onError);
  client.on('close', watch.checkNow).on('ready', watch.checkNow);
  const close = async () => {
    watch.stop();
    ears.close();
    client.disconnect();
  };

  return {
    keyValues: createKeyValues(ask, bytesOf, named),
    sets: createSets(ask, named),
    tokenBuckets: createTokenBuckets(ask, named),
    pubsub: {
      publish: async (channel, message) => void (await ask('PUBLISH', named(channel), message)),
      subscribe: (channel, listener) => ears.subscribe(named(channel), listener),
    },
    async open() {
      client.connect().catch(() => {}); // it goes on trying by itself, and complains
      ears.followSentinels();
      const health = await watch.start(openMs);
      if (health.kind !== 'unfit') return;
      await close();
      throw new Error(health.problem);
    },
    problem: watch.problem,
    close,
  };
}

/** All that is listened to: the other instances, and the sentinels. */
function createSubscribers({ client, newConnection, newSentinels, isLeftBehind }: RedisTopology) {
  const listening = createRedisSubscriber(newConnection);
  const sentinels = newSentinels.map(createRedisSubscriber);
  const move = (news: string) => {
    if (!isLeftBehind(news)) return;
    client.disconnect(true);
    listening.reconnect();
  };
  return {
    subscribe: listening.subscribe,
    followSentinels() {
      for (const sentinel of sentinels) sentinel.subscribe('+switch-master', move);
    },
    close() {
      for (const connection of [listening, ...sentinels]) connection.close();
    },
  };
}

function createTopology(settings: RedisSettings): RedisTopology {
  switch (settings.kind) {
    case 'single':
      return { ...singleMaster(singleOptions(settings)), newSentinels: [], isLeftBehind: () => false };
    case 'sentinels':
      return sentinelTopology(settings);
    case 'cluster':
      return clusterTopology(settings);
  }
}

function carryOutOn(client: Client): ExecuteBatch {
  return (commands) => {
    const keys = commands.map(({ key }) => key);
    const words = commands.flatMap(({ name, words }) => [name, words.length, ...words]);
    return client.carryOut(keys.length, ...keys, ...words);
  };
}

function singleMaster(options: ReturnType<typeof singleOptions | typeof sentinelOptions>) {
  const client = new Redis(options);
  const carryOut = carryOutOn(client);
  return {
    client,
    async carryOut(commands: readonly Command[]) {
      const answers = await carryOut(commands);
      if (answers.some(isOfReplica)) client.disconnect(true); // the master has become one: find the new one
      return answers;
    },
    mostTogether: 64, // a script is not interrupted
    reports: () => (client.status === 'ready' ? [client.info('memory')] : []),
    newConnection: () => new Redis({ ...options, retryStrategy: () => null }),
  };
}

/** Redis 6 puts a few words before it. */
const isOfReplica = (answer: unknown) => answer instanceof Error && /\bREADONLY /.test(answer.message);

/** A master that was replaced may serve on for seconds, and what is written to it is lost: so the sentinels are listened to. */
function sentinelTopology(settings: RedisSettings & { kind: 'sentinels' }): RedisTopology {
  const way = singleMaster(sentinelOptions(settings));
  return {
    ...way,
    newSentinels: sentinelSubscriberOptions(settings).map((options) => () => new Redis(options)),
    isLeftBehind(news) {
      const [name, , , host, port] = news.split(' '); // name, old host and port, new host and port
      if (name !== settings.name || way.client.status !== 'ready') return false;
      const { remoteAddress, remotePort } = way.client.stream;
      return host !== remoteAddress || Number(port) !== remotePort;
    },
  };
}

function clusterTopology(settings: RedisSettings & { kind: 'cluster' }): RedisTopology {
  const startup = startupNodes(settings);
  const client = new Cluster(startup, clusterOptions(settings));
  let owners: readonly string[] = [];
  client.on('refresh', () => {
    owners = client.nodes('master').map(addressOf);
  });
  let turn = 0;
  let refreshedAtMs = 0;
  const holdBack = corkPerTick(() => streamsOf(client.nodes('master')));
  const carryOut = carryOutOn(client);
  return {
    client,
    carryOut(commands) {
      holdBack();
      return carryOut(commands);
    },
    mostTogether: 1,
    reports() {
      // Nobody says when a failover is over. Not by the client's own timer: it may outlive the client, and ask for ever.
      if (performance.now() - refreshedAtMs >= refreshedEveryMs) {
        refreshedAtMs = performance.now();
        client.refreshSlotsCache();
      }
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

/** How often a cluster is asked where its slots are. Milliseconds. */
const refreshedEveryMs = 1_000;

/** A client has none until it connects for the first time, whatever its type says. */
const streamsOf = (clients: readonly { readonly stream?: Writable }[]) =>
  clients.flatMap(({ stream }) => (stream ? [stream] : []));

const addressOf = ({ options: { host, port } }: Redis) => `${host}:${port}`;

/** The client drops a node that it has lost, although slots belong to it, and takes it up again once a second. */
async function unreached(address: string): Promise<never> {
  throw new Error(`no connection to ${address}`);
}

// MERGED HEADER (rewrite or remove):
/* The commands that keep values and sets and book turns in Redis: its own, and ours of redis-scripts.ts. */

/**
 * @param bytesOf what stands under a key in Redis, `null` if nothing does
 * @param named   the key in Redis for a key of ours
 */
function createKeyValues(
  ask: SendCommand,
  bytesOf: (name: string) => Promise<Buffer | null>,
  named: (key: string) => string,
): KeyValues {
  return {
    async read(key) {
      const value = await ask('GET', named(key));
      return typeof value === 'string' ? value : undefined;
    },
    write: async (key, value, ttlMs) => void (await ask('SET', named(key), value, ...expiry(ttlMs))),
    writeIfAbsent: async (key, value, ttlMs) =>
      (await ask('SET', named(key), value, 'NX', ...expiry(ttlMs))) === 'OK',
    async replace(key, expected, value, ttlMs) {
      const ttl = ttlMs === undefined ? [] : [wholeMs(ttlMs)];
      const text = expected.toWellFormed();
      const stands = text.includes(replacementCharacter) ? await bytesOf(named(key)) : text;
      if (stands?.toString() !== text) return false;
      return (await ask('replaceIfUnchanged', named(key), stands, value, ...ttl)) === 1;
    },
    remove: async (key) => void (await ask('DEL', named(key))),
  };
}

/** What bytes are read as that are no text. Redis compares bytes: those that stand there, and not how they were read. */
const replacementCharacter = '\uFFFD';

const expiry = (ttlMs?: number) => (ttlMs === undefined ? [] : ['PX', wholeMs(ttlMs)]);

/** Redis counts whole milliseconds, and takes no value that lives for none. */
const wholeMs = (ttlMs: number) => Math.max(1, Math.ceil(ttlMs));

/** @param named the key in Redis for a key of ours */
function createSets(ask: SendCommand, named: (key: string) => string): Sets {
  return {
    add: async (key, member) => void (await ask('SADD', named(key), member)),
    remove: async (key, member) => void (await ask('SREM', named(key), member)),
    members: async (key) => listIn(await ask('SMEMBERS', named(key))).map(String),
  };
}

/** @param named the key in Redis for a bucket */
function createTokenBuckets(ask: SendCommand, named: (bucket: string) => string): TokenBuckets {
  const book = async (bucket: string, { perSecond, burst }: BucketRate, maxWaitMs: number) =>
    listIn(await ask('reserveTurn', named(bucket), perSecond, burst, maxWaitMs)).map(Number);
  return {
    async reserve(bucket, rate, maxWaitMs) {
      const [waitMs = 0] = await book(bucket, rate, maxWaitMs);
      return waitMs > maxWaitMs ? undefined : waitMs;
    },
    async take(bucket, rate) {
      const [waitMs = 0, aheadMs = 0] = await book(bucket, rate, 0);
      return takeResultOf(waitMs <= 0, aheadMs, rate);
    },
  };
}

const listIn = (answer: unknown): readonly unknown[] => (Array.isArray(answer) ? answer : []);
