/** A Redis cluster for a test: three masters, and optionally replicas of the first master. */

import { sendRedisCommand } from './redis.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

const masterCount = 3;
const slotCount = 16384;

/** A running cluster. All nodes are available when `startRedisCluster` returns it. */
export interface RedisCluster {
  readonly urls: readonly string[];
  readonly masters: readonly RedisProcess[];
  /** Of the first master. */
  readonly replicas: readonly RedisProcess[];
  /** Returns the index in `masters` of the node that owns the slot of a key. */
  ownerOf(key: string): Promise<number>;
}

/** @param replicaCount number of replicas of the first master */
export async function startRedisCluster(life: TestScope, replicaCount = 0): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: masterCount + replicaCount }, () => startRedisProcess(life, nodeArgs)),
  );
  const masters = nodes.slice(0, masterCount);
  await Promise.all(masters.map(assignSlots));
  for (const { port } of nodes.slice(1)) {
    await sendRedisCommand(nodes[0]?.port ?? 0, 'CLUSTER', 'MEET', '127.0.0.1', String(port));
  }
  await untilAllReport(nodes, `cluster_known_nodes:${nodes.length}`);
  const first = String(await sendRedisCommand(masters[0]?.port ?? 0, 'CLUSTER', 'MYID'));
  for (const { port } of nodes.slice(masterCount)) {
    await sendRedisCommand(port, 'CLUSTER', 'REPLICATE', first);
    await until(10_000, 'the replica is in sync with its master', async () =>
      String(await sendRedisCommand(port, 'INFO', 'replication')).includes('master_link_status:up'),
    );
  }
  await untilAllReport(nodes, `cluster_slots_ok:${slotCount}`);
  await untilAllReport(nodes, 'cluster_state:ok');
  return {
    urls: masters.map(({ port }) => `redis://127.0.0.1:${port}`),
    masters,
    replicas: nodes.slice(masterCount),
    async ownerOf(key) {
      const slot = Number(await sendRedisCommand(masters[1]?.port ?? 0, 'CLUSTER', 'KEYSLOT', key));
      return masters.findIndex((_, index) => slot <= lastSlotOf(index));
    },
  };
}

const nodeArgs = () => [
  ...['--save', '', '--appendonly', 'no'],
  ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-node-timeout', '1000'],
  ...['--cluster-require-full-coverage', 'no', '--repl-diskless-sync-delay', '0'],
];

const lastSlotOf = (index: number) => Math.floor(((index + 1) * slotCount) / masterCount) - 1;

async function assignSlots({ port }: RedisProcess, index: number): Promise<void> {
  const range = [lastSlotOf(index - 1) + 1, lastSlotOf(index)].map(String);
  await sendRedisCommand(port, 'CLUSTER', 'ADDSLOTSRANGE', ...range);
  // Prevents a collision of config epochs, which the nodes would have to resolve first.
  await sendRedisCommand(port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
}

/** Waits until the reply of every node to `CLUSTER INFO` contains `line`. */
async function untilAllReport(nodes: readonly RedisProcess[], line: string): Promise<void> {
  await until(20_000, `all nodes report ${line}`, async () => {
    const reports = await Promise.all(nodes.map(({ port }) => sendRedisCommand(port, 'CLUSTER', 'INFO')));
    return reports.every((report) => String(report).split('\r\n').includes(line));
  });
}
