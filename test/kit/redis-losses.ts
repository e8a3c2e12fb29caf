/** The ways in which a Redis loses writes that it has confirmed. */

import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { sendRedisCommand, startRedis } from './redis.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { startSentinels } from './redis-sentinels.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

/** A Redis that loses writes when the test says so. */
export interface LossyRedis {
  /** `state.redis` of the configuration. */
  readonly settings: string | object;
  /** Writes from now on will be lost. Has no effect if the loss takes everything. */
  beginLostWrites(): Promise<void>;
  /** Loses the writes; the Redis is available again afterwards. */
  lose(): Promise<void>;
}

export type RedisLoss = keyof typeof redisLosses;

/** By the name of the loss. */
export const redisLosses = {
  'Redis restarts without its disk': async (life: TestScope): Promise<LossyRedis> => {
    const redis = await startRedis(life);
    return { settings: redis.url, beginLostWrites: async () => {}, lose: redis.restart };
  },

  'Redis is flushed': async (life: TestScope): Promise<LossyRedis> => {
    const redis = await startRedis(life);
    return { settings: redis.url, beginLostWrites: async () => {}, lose: redis.flush };
  },

  'a failover loses the last writes': async (life: TestScope): Promise<LossyRedis> => {
    const args = ['--appendonly', 'yes', '--appendfsync', 'always', '--min-replicas-to-write', '1'];
    const { urls, name, master, replica, cutReplication, retryFailoversSoon } = await startSentinels(life, {
      replicaPriority: 0,
      args,
    });
    const isMaster = async () =>
      /^role:master/m.test(
        String(await sendRedisCommand(replica.port, 'INFO', 'replication').catch(() => '')),
      );
    return {
      settings: { sentinels: urls, name },
      beginLostWrites: async () => cutReplication(),
      async lose() {
        await master.kill();
        // The new master has no replica itself, and would refuse all writes.
        await sendRedisCommand(replica.port, 'CONFIG', 'SET', 'min-replicas-to-write', '0');
        await sendRedisCommand(replica.port, 'CONFIG', 'SET', 'replica-priority', '100');
        await retryFailoversSoon();
        await until(20_000, 'the replica has taken over', isMaster);
      },
    };
  },

  'one shard of a cluster comes back empty': async (life: TestScope): Promise<LossyRedis> => {
    const { urls, masters } = await startRedisCluster(life);
    return {
      settings: { cluster: urls },
      beginLostWrites: async () => {},
      async lose() {
        await masters[1]?.restart();
        await until(20_000, 'all nodes of the cluster serve', async () => {
          const reports = await Promise.all(
            masters.map(({ port }) => sendRedisCommand(port, 'CLUSTER', 'INFO').catch(() => '')),
          );
          return reports.every((report) => /^cluster_state:ok/m.test(String(report)));
        });
      },
    };
  },

  'the end of the append-only file is lost': async (life: TestScope): Promise<LossyRedis> => {
    const redis = await startRedis(life, ['--appendonly', 'yes', '--appendfsync', 'everysec']);
    let keptBytes = 0;
    return {
      settings: redis.url,
      async beginLostWrites() {
        keptBytes = statSync(appendOnlyFileIn(redis.folder)).size;
      },
      async lose() {
        await redis.kill();
        truncateSync(appendOnlyFileIn(redis.folder), keptBytes);
        await redis.restart();
      },
    };
  },

  'an older snapshot is restored': async (life: TestScope): Promise<LossyRedis> => {
    const redis = await startRedis(life);
    return {
      settings: redis.url,
      beginLostWrites: async () => void (await redis.command('SAVE')),
      lose: redis.restart, // loads the snapshot
    };
  },
} as const satisfies Readonly<Record<string, (life: TestScope) => Promise<LossyRedis>>>;

/** The file to which Redis appends its writes. */
function appendOnlyFileIn(folder: string): string {
  const inFolder = join(folder, 'appendonlydir'); // since Redis 7
  const file = readdirSync(inFolder).find((name) => name.endsWith('.incr.aof'));
  if (file === undefined) throw new Error(`there is no append-only file in ${inFolder}`);
  return join(inFolder, file);
}
