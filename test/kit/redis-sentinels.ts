/** A Redis master with a replica, and three sentinels that watch them, for a test. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Life } from './life.ts';
import { sendRedisCommand } from './redis.ts';
import { type RedisProcess, startRedisProcess } from './redis-process.ts';
import { until } from './within.ts';

/** What the sentinels watch; ends with the test. */
export interface SentinelRedis {
  /** The sentinels' addresses. */
  readonly urls: readonly string[];
  /** The name under which they watch the master. */
  readonly name: string;
  readonly master: RedisProcess;
  readonly replica: RedisProcess;
}

const name = 'main';

/** Sentinels that know each other, the master and the replica, and take the master for dead after 300 ms. */
export async function startSentinels(life: Life): Promise<SentinelRedis> {
  const master = await startRedisProcess(life, { args: () => dataArgs });
  const replica = await startRedisProcess(life, {
    args: () => [...dataArgs, '--replicaof', `127.0.0.1 ${master.port}`],
  });
  await until(10_000, 'the replica has what its master has', async () =>
    String(await sendRedisCommand(master.port, 'INFO', 'replication')).includes('state=online'),
  );
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, () =>
      startRedisProcess(life, { args: (_port, folder) => [settingsFile(folder, master.port), '--sentinel'] }),
    ),
  );
  await until(20_000, 'the sentinels know each other and the replica', async () => {
    const views = await Promise.all(sentinels.map(({ port }) => masterInfo(port)));
    return views.every((view) => view.get('num-slaves') === '1' && view.get('num-other-sentinels') === '2');
  });
  return { urls: sentinels.map(({ port }) => `redis://127.0.0.1:${port}`), name, master, replica };
}

const dataArgs = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0'];

/** Sentinels keep what they learn in their file of settings. */
function settingsFile(folder: string, masterPort: number): string {
  const file = join(folder, 'sentinel.conf');
  const lines = [
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${name} 300`,
    `sentinel failover-timeout ${name} 2000`,
  ];
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return file;
}

/** What a sentinel says about the master, by name. */
async function masterInfo(port: number): Promise<ReadonlyMap<string, string>> {
  const answer = (await sendRedisCommand(port, 'SENTINEL', 'MASTER', name)) as readonly string[] | object; // a list or, by protocol 3, a map
  const flat = Array.isArray(answer) ? answer : Object.entries(answer).flat();
  return new Map(Array.from({ length: flat.length / 2 }, (_, pair) => [flat[2 * pair], flat[2 * pair + 1]]));
}
