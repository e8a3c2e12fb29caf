/** State in Redis: one server, a cluster, or the master that sentinels watch. Only this file knows ioredis. */

import type { Writable } from 'node:stream';
import { Cluster, Redis, type Result } from 'ioredis';
import type { RedisSettings } from '../config/schema.ts';
import { inOneWrite } from './one-write.ts';
import type { State } from './ports.ts';
import { answersWithin } from './redis-answer.ts';
import { type CarryOut, type Command, inOneBreath } from './redis-breath.ts';
import { keyValuesBy, reservationsBy, setsBy } from './redis-commands.ts';
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
interface Way {
  readonly client: Client;
  readonly carryOut: CarryOut;
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
  const way = wayTo(settings);
  const { client } = way;
  const answerTo = answersWithin(answerMs, settings.kind === 'cluster' ? 0 : silenceMs);
  const ask = inOneBreath(way.carryOut, answerTo, way.mostTogether);
  const named = (name: string) => `${prefix}${name}`;
  const bytesOf = (name: string) => answerTo(() => client.getBuffer(name));
  const ears = earsOf(way);
  const takesCommands = () => client.status === 'ready';
  const watch = watchRedis({ reports: way.reports, takesCommands }, onChange);
  const complaints = settings.kind === 'cluster' ? 'node error' : 'error'; // a cluster's own errors do not say why
  client.on('error', () => {}).on(complaints, watch.complain);
  client.on('close', watch.lookNow).on('ready', watch.lookNow);
  const close = async () => {
    watch.end();
    ears.close();
    client.disconnect();
  };

  return {
    keyValues: keyValuesBy(ask, bytesOf, named),
    sets: setsBy(ask, named),
    reservations: reservationsBy(ask, named),
    announcements: {
      publish: async (channel, message) => void (await ask('PUBLISH', named(channel), message)),
      subscribe: (channel, listener) => ears.subscribe(named(channel), listener),
    },
    async open() {
      client.connect().catch(() => {}); // it goes on trying by itself, and complains
      ears.followSentinels();
      const health = await watch.begin(openMs);
      if (health.kind !== 'unfit') return;
      await close();
      throw new Error(health.trouble);
    },
    trouble: watch.trouble,
    close,
  };
}

/** All that is listened to: the other instances, and the sentinels. */
function earsOf({ client, newConnection, newSentinels, isLeftBehind }: Way) {
  const listening = createListening(newConnection);
  const sentinels = newSentinels.map(createListening);
  const move = (news: string) => {
    if (!isLeftBehind(news)) return;
    client.disconnect(true);
    listening.renew();
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

function carryOutOn(client: Client): CarryOut {
  return (commands) => {
    const keys = commands.map(({ key }) => key);
    const words = commands.flatMap(({ name, words }) => [name, words.length, ...words]);
    return client.carryOut(keys.length, ...keys, ...words);
  };
}

function wayToMaster(options: ReturnType<typeof singleOptions | typeof sentinelOptions>) {
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
  let refreshedAtMs = 0;
  const holdBack = inOneWrite(() => streamsOf(client.nodes('master')));
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
