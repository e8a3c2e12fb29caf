/** The kinds of Redis that a fleet may share. */

import type { Life } from './life.ts';
import { type RedisServer, sendRedisCommand, startRedis } from './redis.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { type SentinelRedis, startSentinels } from './redis-sentinels.ts';

/** A Redis of some kind, that runs. */
export interface FleetRedis {
  /** `state.redis` of the configuration. */
  readonly settings: string | object;
  /** Has it forget everything. */
  flush(): Promise<void>;
}

/** One server. @param args further arguments of redis-server */
export async function startSingleRedis(
  life: Life,
  args: readonly string[] = [],
): Promise<FleetRedis & RedisServer> {
  const server = await startRedis(life, args);
  return { ...server, settings: server.url };
}

/** A cluster of three masters. */
export async function startClusterRedis(life: Life): Promise<FleetRedis> {
  const { urls, masters } = await startRedisCluster(life);
  return {
    settings: { cluster: urls },
    flush: async () =>
      void (await Promise.all(masters.map(({ port }) => sendRedisCommand(port, 'FLUSHALL')))),
  };
}

/** A master with its replica, watched by three sentinels. */
export async function startSentinelRedis(life: Life): Promise<FleetRedis & SentinelRedis> {
  const watched = await startSentinels(life);
  return {
    ...watched,
    settings: { sentinels: watched.urls, name: watched.name },
    flush: async () => void (await sendRedisCommand(watched.master.port, 'FLUSHALL')),
  };
}

/** Makes what many tests share when the first of them asks for it. */
export function lazy<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
