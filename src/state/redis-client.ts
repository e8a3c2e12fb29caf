/** The connections to Redis: one server, the master behind sentinels, or a cluster. Only this file imports ioredis. */

import type { Writable } from 'node:stream';
import { Cluster, Command, Redis } from 'ioredis';
import type { PubSub } from './ports.ts';
import { corkPerTick, type ExecuteBatch, type RedisCommand } from './redis-batch.ts';
import { batchArguments, isScriptMissing, type ScriptArguments, scriptOf } from './redis-batch-script.ts';
import type { HealthSources } from './redis-monitor.ts';
import {
  clusterOptions,
  nodeOptions,
  type RedisConnectionSettings,
  sentinelOptions,
  sentinelSubscriberOptions,
  singleOptions,
  startupNodes,
} from './redis-options.ts';
import { createRedisSubscriber } from './redis-subscriber.ts';

/** All connections of one instance. They reconnect by themselves. */
export interface RedisClient extends HealthSources {
  /** Connects in the background, and keeps trying. */
  connect(): void;
  readonly executeBatch: ExecuteBatch;
  /** How many commands fit into one batch: 1 in a cluster, because the keys of a batch may belong to different nodes. */
  readonly maxBatchSize: number;
  /** The value of a complete key as it is stored; `null` if there is none. */
  getBuffer(key: string): Promise<Buffer | null>;
  /** Connects a subscriber at the first call. */
  readonly subscribe: PubSub['subscribe'];
  onError(listener: (error: unknown) => void): void;
  /** @param listener called when the connection is established or lost */
  onStatusChange(listener: () => void): void;
  close(): void;
}

/** @param timeoutMs for the answer to a command */
export function createRedisClient(settings: RedisConnectionSettings, timeoutMs: number): RedisClient {
  const topology = createTopology(settings, timeoutMs);
  const { client, executeBatch, maxBatchSize, reports } = topology;
  const subscriber = createRedisSubscriber(topology.newConnection);
  const sentinels = topology.newSentinelConnections.map(createRedisSubscriber);
  const onSwitchMaster = (message: string) => {
    if (!topology.isFormerMaster(message)) return;
    client.disconnect(true);
    subscriber.reconnect();
  };
  client.on('error', () => {}); // without a listener, ioredis prints errors

  return {
    executeBatch,
    maxBatchSize,
    reports,
    acceptsCommands: () => client.status === 'ready',
    getBuffer: (key) => client.getBuffer(key),
    subscribe: subscriber.subscribe,
    connect() {
      client.connect().catch(() => {}); // the client retries, and emits its errors
      for (const sentinel of sentinels) sentinel.subscribe('+switch-master', onSwitchMaster);
    },
    onError(listener) {
      client.on(settings.kind === 'cluster' ? 'node error' : 'error', listener); // a cluster's own errors give no reason
    },
    onStatusChange(listener) {
      client.on('close', listener).on('ready', listener);
    },
    close() {
      for (const each of [subscriber, ...sentinels]) each.close();
      client.disconnect();
    },
  };
}

/** How the kinds of Redis differ. */
interface Topology extends Pick<RedisClient, 'executeBatch' | 'maxBatchSize' | 'reports'> {
  readonly client: Redis | Cluster;
  /** A connection to any node; it does not reconnect by itself. */
  newConnection(): Redis;
  /** For each sentinel, a function that makes a connection to it. */
  readonly newSentinelConnections: readonly (() => Redis)[];
  /** Whether this `+switch-master` message means that the client is connected to a former master. */
  isFormerMaster(message: string): boolean;
}

function createTopology(settings: RedisConnectionSettings, timeoutMs: number): Topology {
  switch (settings.kind) {
    case 'single':
      return {
        ...masterTopology(singleOptions(settings, timeoutMs)),
        newSentinelConnections: [],
        isFormerMaster: () => false,
      };
    case 'sentinels':
      return sentinelTopology(settings, timeoutMs);
    case 'cluster':
      return clusterTopology(settings, timeoutMs);
  }
}

function masterTopology(options: ReturnType<typeof singleOptions | typeof sentinelOptions>) {
  const client = new Redis(options);
  const executeBatch = batchExecutorOn(client);
  return {
    client,
    executeBatch: (commands: readonly RedisCommand[]) =>
      executeBatch(commands).then((results) => {
        if (results.some(isReplicaError)) client.disconnect(true); // the master became a replica: find the new master
        return results;
      }),
    maxBatchSize: 64, // Redis serves no other client while a script runs
    reports: () => (client.status === 'ready' ? [client.info()] : []),
    newConnection: () => new Redis({ ...options, retryStrategy: () => null }),
  };
}

/** Redis 6 puts a few words before the code. */
const isReplicaError = (result: unknown) => result instanceof Error && /\bREADONLY /.test(result.message);

/** A former master may accept writes for seconds, and these are lost, so this subscribes to the sentinels' messages. */
function sentinelTopology(
  settings: RedisConnectionSettings & { kind: 'sentinels' },
  timeoutMs: number,
): Topology {
  const master = masterTopology(sentinelOptions(settings, timeoutMs));
  return {
    ...master,
    newSentinelConnections: sentinelSubscriberOptions(settings, timeoutMs).map(
      (options) => () => new Redis(options),
    ),
    isFormerMaster(message) {
      const [name, , , host, port] = message.split(' '); // name, old host and port, new host and port
      if (name !== settings.name || master.client.status !== 'ready') return false;
      const { remoteAddress, remotePort } = master.client.stream;
      return host !== remoteAddress || Number(port) !== remotePort;
    },
  };
}

function clusterTopology(
  settings: RedisConnectionSettings & { kind: 'cluster' },
  timeoutMs: number,
): Topology {
  const startup = startupNodes(settings);
  const client = new Cluster(startup, clusterOptions(settings, timeoutMs));
  let slotOwners: readonly string[] = [];
  client.on('refresh', () => {
    slotOwners = client.nodes('master').map(addressOf);
  });
  let nextNode = 0;
  let refreshedAtMs = 0;
  const cork = corkPerTick(() => streamsOf(client.nodes('master')));
  const executeBatch = batchExecutorOn(client);
  return {
    client,
    executeBatch(commands) {
      cork();
      return executeBatch(commands);
    },
    maxBatchSize: 1,
    reports() {
      // No message announces the end of a failover. The client's own timer can outlive the client, so it is not used.
      if (performance.now() - refreshedAtMs >= refreshSlotsEveryMs) {
        refreshedAtMs = performance.now();
        client.refreshSlotsCache();
      }
      const masters = client.nodes('master');
      const lost = slotOwners.filter((owner) => !masters.map(addressOf).includes(owner));
      return [...lost.map(unreachable), ...masters.flatMap((node) => [node.info(), node.cluster('INFO')])];
    },
    newConnection() {
      const known = client.nodes().map(({ options: { host, port } }) => ({ host, port }));
      const nodes = known.length > 0 ? known : startup;
      return new Redis({
        ...nodeOptions(settings, timeoutMs),
        ...nodes[nextNode++ % nodes.length],
        retryStrategy: () => null,
      });
    },
    newSentinelConnections: [],
    isFormerMaster: () => false,
  };
}

const refreshSlotsEveryMs = 1_000;

/** A client has no stream until it connects for the first time, contrary to its type. */
const streamsOf = (clients: readonly { readonly stream?: Writable }[]) =>
  clients.flatMap(({ stream }) => (stream ? [stream] : []));

const addressOf = ({ options: { host, port } }: Redis) => `${host}:${port}`;

/** The client drops a node that it cannot reach although the node owns slots, and adds it again once per second. */
async function unreachable(address: string): Promise<never> {
  throw new Error(`no connection to ${address}`);
}

/**
 * Executes the script by its hash; by its text on a Redis that does not know it yet.
 *
 * Not with `defineCommand`: ioredis assigns functions to properties of the command, and V8 then keeps it until a full collection
 * (ADR 62). So that its arguments are not kept as well, they are removed when it is answered.
 */
function batchExecutorOn(client: Redis | Cluster): ExecuteBatch {
  async function execute(name: 'evalsha' | 'eval', args: ScriptArguments): Promise<readonly unknown[]> {
    const command = new Command(name, [scriptOf[name], ...args], { replyEncoding: 'utf8' });
    try {
      return (await client.sendCommand(command)) as readonly unknown[]; // the result of the script
    } catch (thrown) {
      if (name === 'eval' || !isScriptMissing(thrown)) throw thrown;
      return execute('eval', args);
    } finally {
      command.args.length = 0;
    }
  }
  return (commands) => execute('evalsha', batchArguments(commands));
}
