/** The kinds of Redis that a fleet of gateways can share. */

import { type RedisServer, sendRedisCommand, startRedis } from './redis.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { type SentinelRedis, startSentinels } from './redis-sentinels.ts';
import type { TestScope } from './test-scope.ts';

export interface FleetRedis {
  /** `state.redis` of the configuration. */
  readonly settings: string | object;
  /** Removes all data. */
  flush(): Promise<void>;
}

/** One server. @param args further arguments of redis-server */
export async function startSingleRedis(
  life: TestScope,
  args: readonly string[] = [],
): Promise<FleetRedis & RedisServer> {
  const server = await startRedis(life, args);
  return { ...server, settings: server.url };
}

/** A cluster of three masters. */
export async function startClusterRedis(life: TestScope): Promise<FleetRedis> {
  const { urls, masters } = await startRedisCluster(life);
  const flush = () => Promise.all(masters.map(({ port }) => sendRedisCommand(port, 'FLUSHALL')));
  return { settings: { cluster: urls }, flush: async () => void (await flush()) };
}

/** A master with a replica, monitored by three sentinels. */
export async function startSentinelRedis(
  life: TestScope,
): Promise<FleetRedis & SentinelRedis & { readonly allowFailover: () => Promise<void> }> {
  const redis = await startSentinels(life, { replicaPriority: 0 });
  return {
    ...redis,
    settings: { sentinels: redis.urls, name: redis.name },
    flush: async () => void (await sendRedisCommand(redis.master.port, 'FLUSHALL')),
    async allowFailover() {
      await sendRedisCommand(redis.replica.port, 'CONFIG', 'SET', 'replica-priority', '100');
      await redis.retryFailoversSoon();
    },
  };
}

/** Creates a value at the first call, and returns the same one afterwards. */
export function lazy<Value>(create: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined;
  return () => {
    value ??= create();
    return value;
  };
}
