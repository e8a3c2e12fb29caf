/** The connections to Redis: one server, the master behind sentinels, or a cluster. Only this file imports ioredis. */

import type { Writable } from 'node:stream';
import { Cluster, Command, Redis } from 'ioredis';
import type { PubSub } from './ports.ts';
import { corkPerTick, type ExecuteBatch, type RedisCommand } from './redis-batch.ts';
import {
  batchArguments,
  isScriptMissing,
  resultsOf,
  type ScriptArguments,
  scriptOf,
} from './redis-batch-script.ts';
import type {
  Confirmation,
  ConfirmedCommand,
  ConfirmingConnection,
  ConfirmingMasters,
} from './redis-confirmation.ts';
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
import type { ReplicaCounts } from './redis-replicas.ts';
import type { RedisReader } from './redis-request-log.ts';
import { createRedisSubscriber } from './redis-subscriber.ts';

/** All connections of one instance. They reconnect by themselves, except those for confirmed writes. */
export interface RedisClient extends HealthSources, ConfirmingMasters {
  /** Connects in the background, and keeps trying. */
  connect(): void;
  readonly executeBatch: ExecuteBatch;
  /** How many commands fit into one batch: 1 in a cluster, because the keys of a batch may belong to different nodes. */
  readonly maxBatchSize: number;
  getBuffer(key: string): Promise<Buffer | null>;
  readonly reader: RedisReader;
  /** Connects a subscriber at the first call. */
  readonly subscribe: PubSub['subscribe'];
  onError(listener: (error: unknown) => void): void;
  /** @param listener called when the connection is established or lost */
  onStatusChange(listener: () => void): void;
  /** The run id and the replication id of every master. */
  identity(): Promise<string>;
  /** @param listener called at once when a connection to a master is lost or replaced */
  onDisconnect(listener: () => void): void;
  close(): void;
}

/**
 * @param replicas  receives the report of each master on its replicas, with every health check
 * @param timeoutMs for the answer to a command
 */
export function createRedisClient(
  settings: RedisConnectionSettings,
  replicas: ReplicaCounts,
  timeoutMs: number,
): RedisClient {
  const topology = createTopology(settings, replicas, timeoutMs);
  const { client, executeBatch, maxBatchSize, masterOf } = topology;
  const subscriber = createRedisSubscriber(topology.newConnection);
  const sentinels = topology.newSentinelConnections.map(createRedisSubscriber);
  const onSwitchMaster = (message: string) => {
    if (!topology.isFormerMaster(message)) return;
    client.disconnect(true);
    subscriber.reconnect();
  };
  const confirming = new Set<ConfirmingConnection>();
  const closeConfirming = () => {
    for (const connection of confirming) connection.close();
    confirming.clear();
  };
  client.on('error', () => {}); // without a listener, ioredis prints errors
  client.on('close', closeConfirming); // the next ones lead to the same master as the next connection of the client

  return {
    executeBatch,
    maxBatchSize,
    reports() {
      const replication = topology.masters().map(async (master) => {
        const report = await master.info('replication');
        replicas.observe(topology.nameOf(master), report);
        return report;
      });
      return [...topology.reports(), ...replication];
    },
    masterOf,
    newConfirmingConnection(master, timeoutMs) {
      const connection = confirmingConnectionOn(
        topology.newMasterConnection(master, timeoutMs),
        maxBatchSize,
      );
      confirming.add(connection);
      return {
        ...connection,
        async executeAndWait(...args) {
          const confirmation = await connection.executeAndWait(...args);
          if (confirmation.results.some(isReplicaError)) client.disconnect(true); // as in `executeBatch`
          return confirmation;
        },
        close() {
          confirming.delete(connection);
          connection.close();
        },
      };
    },
    acceptsCommands: () => client.status === 'ready',
    getBuffer: (key) => client.getBuffer(key),
    reader: {
      getBuffer: (key) => client.getBuffer(key),
      hmgetBuffer: (key, fields) => client.hmgetBuffer(key, ...fields.map(String)),
      hgetallBuffer: (key) => client.hgetallBuffer(key),
    },
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
    async identity() {
      const masters = topology.masters();
      if (masters.length === 0) throw new Error('not connected');
      return (await Promise.all(masters.map(identityOf))).toSorted().join(' ');
    },
    onDisconnect: topology.onDisconnect,
    close() {
      closeConfirming();
      for (const each of [subscriber, ...sentinels]) each.close();
      client.disconnect();
    },
  };
}

/** Both change in a failover; the run id alone changes in a restart. */
async function identityOf(master: Redis): Promise<string> {
  const reports = await Promise.all([master.info('server'), master.info('replication')]);
  return ['run_id', 'master_replid']
    .map((name) => new RegExp(`^${name}:(\\w+)`, 'm').exec(reports.join('\n'))?.[1])
    .join(':');
}

/** How the kinds of Redis differ. */
interface Topology
  extends Pick<RedisClient, 'executeBatch' | 'maxBatchSize' | 'reports' | 'onDisconnect' | 'masterOf'> {
  readonly client: Redis | Cluster;
  /** The connections to the masters; empty while there is none. */
  masters(): readonly Redis[];
  /** What `masterOf` calls this master. */
  nameOf(master: Redis): string;
  /** A connection to this master; it does not reconnect by itself. @param timeoutMs of the slowest command */
  newMasterConnection(master: string, timeoutMs: number): Redis;
  /** A connection to any node; it does not reconnect by itself. */
  newConnection(): Redis;
  /** For each sentinel, a function that makes a connection to it. */
  readonly newSentinelConnections: readonly (() => Redis)[];
  /** Whether this `+switch-master` message means that the client is connected to a former master. */
  isFormerMaster(message: string): boolean;
}

function createTopology(
  settings: RedisConnectionSettings,
  replicas: ReplicaCounts,
  timeoutMs: number,
): Topology {
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
      return clusterTopology(settings, replicas, timeoutMs);
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
    masters: () => (client.status === 'ready' ? [client] : []),
    onDisconnect: (listener: () => void) => void client.on('close', listener),
    masterOf: () => onlyMaster,
    nameOf: () => onlyMaster,
    newConnection: () => new Redis({ ...options, retryStrategy: () => null }),
    newMasterConnection: (_master: string, timeoutMs: number) =>
      new Redis({ ...options, ...withoutRetries(timeoutMs) }),
  };
}

const onlyMaster = 'the master';

/** For a connection that WAIT blocks. */
const withoutRetries = (timeoutMs: number) => ({
  retryStrategy: () => null,
  commandTimeout: timeoutMs,
  socketTimeout: timeoutMs,
});

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
  replicas: ReplicaCounts,
  timeoutMs: number,
): Topology {
  const startup = startupNodes(settings);
  const client = new Cluster(startup, clusterOptions(settings, timeoutMs));
  let slotOwners: readonly string[] = [];
  let onDisconnect = () => {};
  client.on('refresh', () => {
    const owners = client.nodes('master').map(addressOf);
    if (owners.some((owner) => !slotOwners.includes(owner))) onDisconnect();
    slotOwners = owners;
    replicas.retain(owners);
  });
  client.on('+node', (node: Redis) => void node.on('close', () => onDisconnect()));
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
    masters: () => client.nodes('master'),
    nameOf: addressOf,
    masterOf: (key) => client.slots[new Command('get', [key]).getSlot()]?.[0],
    newMasterConnection(master, slowestMs) {
      const { host, port } = hostAndPortOf(master);
      return new Redis({ ...nodeOptions(settings, timeoutMs), host, port, ...withoutRetries(slowestMs) });
    },
    onDisconnect(listener) {
      onDisconnect = listener;
    },
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

/** The inverse of `addressOf`; a host by IPv6 contains colons. */
function hostAndPortOf(address: string) {
  const end = address.lastIndexOf(':');
  return { host: address.slice(0, end), port: Number(address.slice(end + 1)) };
}

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

/** @param scriptSize how many commands one script may execute */
function confirmingConnectionOn(redis: Redis, scriptSize: number): ConfirmingConnection {
  let opened: Promise<string> | undefined;
  let isClosed = false;
  redis.on('error', () => {}); // the commands fail as well
  redis.on('close', () => {
    isClosed = true;
  });

  /** Not as `batchExecutorOn`: it executes a script that Redis does not know a second time, but only after the WAIT. */
  async function execute(
    method: 'evalsha' | 'eval',
    commands: readonly ConfirmedCommand[],
    replicas: number,
    waitMs: number,
  ): Promise<Confirmation> {
    const pipeline = redis.pipeline();
    const parts: { readonly position: number; readonly size: number }[] = [];
    for (let start = 0; start < commands.length; start += scriptSize) {
      const part = commands.slice(start, start + scriptSize);
      if (part[0]?.redirectedBy === 'ASK') pipeline.asking();
      parts.push({ position: pipeline.length, size: part.length });
      pipeline[method](scriptOf[method], ...batchArguments(part));
    }
    pipeline.wait(replicas, waitMs);
    const answers = (await pipeline.exec()) ?? [];
    const [waitError, confirmedBy] = answers.at(-1) ?? [];
    if (waitError) throw waitError;
    const results = parts.flatMap(({ position, size }) => resultsOf(size, answers[position]));
    return { results, confirmedBy: Number(confirmedBy) };
  }

  return {
    open() {
      opened ??= redis.connect().then(() => redis.info('replication'));
      return opened;
    },
    isClosed: () => isClosed,
    async executeAndWait(commands, replicas, waitMs) {
      const confirmation = await execute('evalsha', commands, replicas, waitMs);
      if (!confirmation.results.some(isScriptMissing)) return confirmation;
      return execute('eval', commands, replicas, waitMs);
    },
    close() {
      isClosed = true;
      redis.disconnect();
    },
  };
}
