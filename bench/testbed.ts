/** The environment of the measurements: a bank, Redis, and one contender at a time, on separate cores. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { redisProgram } from '../test/kit/find-redis.ts';
import { temporaryFolder } from '../test/kit/folder.ts';
import { freePort } from '../test/kit/ports.ts';
import { sendRedisCommand } from '../test/kit/redis.ts';
import { startRedisProcess } from '../test/kit/redis-process.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import { until } from '../test/kit/within.ts';
import type { Contender } from './contenders/contender.ts';
import { nginxBank } from './contenders/nginx.ts';
import { anyCores, assignCores, type CoreAssignment, pinThisProcess } from './measure/cores.ts';
import { type Launch, startProgram } from './measure/program.ts';
import { isInstalled } from './prerequisites.ts';

/** A started contender. */
export interface RunningServer {
  readonly port: number;
  readonly pids: readonly number[];
}

export interface Testbed {
  readonly cores: CoreAssignment;
  readonly upstreamPort: number;
  /** A Redis, and one with a replica; 0 if no Redis is installed. */
  readonly redisPort: number;
  readonly replicatedRedisPort: number;
  /** Starts a contender on an empty Redis, runs `act`, and stops the contender. */
  withContender<Result>(
    contender: Contender,
    act: (server: RunningServer) => Promise<Result>,
  ): Promise<Result>;
}

/**
 * @param life stops the bank and Redis at its end
 * @param processes of the largest contender; `undefined` for measurements in which time does not count: they use any core
 */
export async function openTestbed(life: TestScope, processes: number | undefined): Promise<Testbed> {
  const cores = processes === undefined ? anyCores : assignCores(processes);
  pinThisProcess(cores.others);
  const [redisPort, replicatedRedisPort] = redisProgram() ? await startRedisServers(life) : [0, 0];
  const folder = temporaryFolder(life);
  const upstreamPort = await freePort();
  const bank = await startProgram(
    bankLaunch(upstreamPort, folder),
    upstreamPort,
    cores.others,
    join(folder, 'bank.log'),
  );
  life.after(() => bank.stop());

  return {
    cores,
    upstreamPort,
    redisPort,
    replicatedRedisPort,
    async withContender(contender, act) {
      if (redisPort) await sendRedisCommand(redisPort, 'FLUSHALL');
      if (replicatedRedisPort) await sendRedisCommand(replicatedRedisPort, 'FLUSHALL');
      const contenderFolder = temporaryFolder(life);
      const port = await freePort();
      const launches = contender.launches({
        port,
        upstreamPort,
        redisPort,
        replicatedRedisPort,
        folder: contenderFolder,
      });
      const running = await Promise.all(
        launches.map((launch, at) =>
          startProgram(launch, port, cores.server, join(contenderFolder, `${at}.log`)),
        ),
      );
      try {
        const result = await act({ port, pids: running.map(({ pid }) => pid) });
        for (const program of running) program.assertRunning();
        return result;
      } finally {
        await Promise.all(running.map((program) => program.stop()));
        rmSync(contenderFolder, { recursive: true, force: true });
      }
    },
  };
}

/** @returns the ports of a Redis on its own and of one with a replica */
async function startRedisServers(life: TestScope): Promise<readonly [number, number]> {
  const withoutDisk = ['--save', '', '--appendonly', 'no'];
  const alone = await startRedisProcess(life, () => withoutDisk);
  const master = await startRedisProcess(life, () => [...withoutDisk, '--repl-diskless-sync-delay', '0']);
  const { port } = await startRedisProcess(life, () => [
    ...withoutDisk,
    '--replicaof',
    `127.0.0.1 ${master.port}`,
  ]);
  await until(10_000, 'the replica is in sync', async () =>
    /master_link_status:up/.test(String(await sendRedisCommand(port, 'INFO', 'replication'))),
  );
  return [alone.port, master.port];
}

const bankLaunch = (port: number, folder: string): Launch =>
  isInstalled('nginx')
    ? nginxBank({ port, folder })
    : { command: [process.execPath, join(import.meta.dirname, 'programs/node-bank.ts'), String(port)] };
