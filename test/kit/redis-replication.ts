/** A Redis master with replicas for a test, and ways to stop the replication. */

import { type RedisServer, sendRedisCommand, startRedis } from './redis.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

export interface ReplicatedRedis {
  readonly master: RedisServer;
  readonly replicas: readonly RedisProcess[];
}

/** Returns when all replicas are in sync with their master. */
export async function startReplicatedRedis(life: TestScope, replicaCount = 1): Promise<ReplicatedRedis> {
  const master = await startRedis(life, ['--repl-diskless-sync-delay', '0']);
  const replicaArgs = ['--save', '', '--appendonly', 'no', '--replicaof', `127.0.0.1 ${master.port}`];
  const replicas = await Promise.all(
    Array.from({ length: replicaCount }, () => startRedisProcess(life, () => replicaArgs)),
  );
  await untilReplicasAre(master, replicaCount);
  return { master, replicas };
}

/** Waits until a master has this number of replicas that have confirmed what it sends them. */
export async function untilReplicasAre({ port }: Pick<RedisProcess, 'port'>, count: number): Promise<void> {
  await until(10_000, `${count} replicas confirm what the master sends`, async () => {
    await sendRedisCommand(port, 'PUBLISH', 'any', ''); // a replica cannot confirm anything before the first command
    const report = String(await sendRedisCommand(port, 'INFO', 'replication'));
    return (report.match(/state=online,offset=[1-9]/g) ?? []).length === count;
  });
}

/** Disconnects all replicas of a master, and keeps them away until `allowReplication`. Other clients stay connected. */
export async function cutReplication({ port }: Pick<RedisProcess, 'port'>): Promise<void> {
  await sendRedisCommand(port, 'ACL', 'SETUSER', 'default', '-psync', '-sync');
  await sendRedisCommand(port, 'CLIENT', 'KILL', 'TYPE', 'replica');
  await untilReplicasAre({ port }, 0);
}

export async function allowReplication({ port }: Pick<RedisProcess, 'port'>): Promise<void> {
  // Not +sync: a replica without PSYNC falls back to that old protocol, in which it never confirms anything.
  await sendRedisCommand(port, 'ACL', 'SETUSER', 'default', '+psync');
}
