/** A Redis master with a replica, and three sentinels that monitor them, for a test. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sendRedisCommand } from './redis.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

export interface SentinelRedis {
  /** The addresses of the sentinels. */
  readonly urls: readonly string[];
  /** The name of the master in the configuration of the sentinels. */
  readonly name: string;
  readonly master: RedisProcess;
  readonly replica: RedisProcess;
  /** Sentinels that find no replica to promote try again after 4 s instead of 2 min. */
  retryFailoversSoon(): Promise<void>;
}

interface SentinelOptions {
  /** 0 = the sentinels do not promote the replica until its `replica-priority` is changed. By default 100. */
  readonly replicaPriority?: number;
}

const name = 'main';

/** Returns when the sentinels know each other, the master and the replica. They declare the master down after 300 ms. */
export async function startSentinels(
  life: TestScope,
  { replicaPriority = 100 }: SentinelOptions = {},
): Promise<SentinelRedis> {
  const master = await startRedisProcess(life, () => dataArgs);
  const replica = await startRedisProcess(life, () => [
    ...dataArgs,
    '--replicaof',
    `127.0.0.1 ${master.port}`,
    '--replica-priority',
    String(replicaPriority),
  ]);
  await until(10_000, 'the replica is in sync with its master', async () =>
    String(await sendRedisCommand(master.port, 'INFO', 'replication')).includes('state=online'),
  );
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, () =>
      startRedisProcess(life, (_port, folder) => [settingsFile(folder, master.port), '--sentinel']),
    ),
  );
  await until(20_000, 'the sentinels know each other and the replica', async () => {
    const views = await Promise.all(sentinels.map(({ port }) => masterInfo(port)));
    return views.every((view) => view.get('num-slaves') === '1' && view.get('num-other-sentinels') === '2');
  });
  return {
    urls: sentinels.map(({ port }) => `redis://127.0.0.1:${port}`),
    name,
    master,
    replica,
    async retryFailoversSoon() {
      for (const { port } of sentinels) {
        await sendRedisCommand(port, 'SENTINEL', 'SET', name, 'failover-timeout', '2000');
      }
    },
  };
}

const dataArgs = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0'];

/** Sentinels also store their state in this file, so each needs its own. */
function settingsFile(folder: string, masterPort: number): string {
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${name} 300`,
    `sentinel failover-timeout ${name} 60000`,
  ];
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return file;
}

/** The fields that a sentinel reports about the master. */
async function masterInfo(port: number): Promise<ReadonlyMap<string, string>> {
  const answer = (await sendRedisCommand(port, 'SENTINEL', 'MASTER', name)) as readonly string[] | object; // a list or, by protocol 3, a map
  const flat = Array.isArray(answer) ? answer : Object.entries(answer).flat();
  return new Map(Array.from({ length: flat.length / 2 }, (_, pair) => [flat[2 * pair], flat[2 * pair + 1]]));
}
