/** A number of idle instances on one Redis, and what they cost. */

import { setTimeout } from 'node:timers/promises';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { type RedisServer, startRedis } from '../../test/kit/redis.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { cpuMsOf } from '../measure/proc.ts';

interface FleetRun {
  readonly instances: number;
  readonly seconds: number;
}

/** For the JIT compiler, and until all instances know each other. Seconds. */
const warmUpSeconds = 15;

/** @returns the columns of the table, as text */
export async function measureFleet(
  life: TestScope,
  { instances, seconds }: FleetRun,
): Promise<readonly string[]> {
  const redis = await startRedis(life);
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: 'http://127.0.0.1:9' },
      production: { baseUrl: 'http://127.0.0.1:10' },
    },
    shaping: { expectedInstances: instances },
    state: { redis: redis.url },
  };
  const gateways: GatewayProcess[] = [];
  for (let started = 0; started < instances; started++)
    gateways.push(await startGatewayProcess(life, sections));
  const pids = gateways.flatMap(({ command }) => command.pid ?? []);
  const redisPid = await pidOf(redis);
  await setTimeout(warmUpSeconds * 1_000);

  const read = async () => ({
    ...(await countsOf(redis)),
    cpuMs: cpuMsOf(pids),
    redisCpuMs: cpuMsOf([redisPid]),
    atMs: performance.now(),
  });
  const before = await read();
  await setTimeout(seconds * 1_000);
  const after = await read();

  const elapsed = (after.atMs - before.atMs) / 1_000;
  const perSecondEach = (name: 'publishes' | 'commands' | 'sentBytes') =>
    (after[name] - before[name]) / elapsed / instances;
  return [
    perSecondEach('publishes').toFixed(2),
    perSecondEach('commands').toFixed(1),
    ((after.redisCpuMs - before.redisCpuMs) / elapsed / 10).toFixed(2),
    ((after.cpuMs - before.cpuMs) / elapsed / 10 / instances).toFixed(2),
    (perSecondEach('sentBytes') / 1_000).toFixed(1),
  ];
}

/** Commands inside scripts included; the script calls themselves not. */
async function countsOf(redis: RedisServer) {
  const stats = String(await redis.command('INFO', 'commandstats'));
  const calls = new Map(
    Array.from(stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm), ([, name = '', count]) => [
      name,
      Number(count),
    ]),
  );
  const total = [...calls].reduce((sum, [name, count]) => (name.startsWith('eval') ? sum : sum + count), 0);
  const [, sent] = /^total_net_output_bytes:(\d+)/m.exec(String(await redis.command('INFO', 'stats'))) ?? [];
  return { publishes: calls.get('publish') ?? 0, commands: total, sentBytes: Number(sent) };
}

const pidOf = async (redis: RedisServer): Promise<number> =>
  Number(/^process_id:(\d+)/m.exec(String(await redis.command('INFO', 'server')))?.[1]);
