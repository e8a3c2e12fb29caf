/** The environment of the measurements: a bank, Redis, and one contender at a time, on separate cores. */

import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { redisProgram } from '../test/kit/find-redis.ts';
import { temporaryFolder } from '../test/kit/folder.ts';
import { freePort } from '../test/kit/ports.ts';
import { startRedisProcess } from '../test/kit/redis-process.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import type { Contender } from './contenders/contender.ts';
import { nginxBank } from './contenders/nginx.ts';
import { assignCores, type CoreAssignment, pinThisProcess } from './measure/cores.ts';
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
  /** Starts a contender on an empty Redis, runs `act`, and stops the contender. */
  withContender<Result>(
    contender: Contender,
    act: (server: RunningServer) => Promise<Result>,
  ): Promise<Result>;
}

/** @param processes of the largest contender @param life stops the bank and Redis at its end */
export async function openTestbed(life: TestScope, processes: number): Promise<Testbed> {
  const cores = assignCores(processes);
  pinThisProcess(cores.others);
  const withoutDisk = () => ['--save', '', '--appendonly', 'no'];
  const redisPort = redisProgram() ? (await startRedisProcess(life, withoutDisk)).port : undefined;
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
    async withContender(contender, act) {
      if (redisPort) await flushAll(redisPort);
      const contenderFolder = temporaryFolder(life);
      const port = await freePort();
      const launches = contender.launches({
        port,
        upstreamPort,
        redisPort: redisPort ?? 0,
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

const bankLaunch = (port: number, folder: string): Launch =>
  isInstalled('nginx')
    ? nginxBank({ port, folder })
    : { command: [process.execPath, join(import.meta.dirname, 'programs/node-bank.ts'), String(port)] };

/** Empties Redis over a plain socket. @throws Error if Redis does not confirm it */
function flushAll(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('FLUSHALL\r\n'));
    socket.once('error', reject).once('data', (reply) => {
      socket.destroy();
      if (reply.toString().startsWith('+OK')) resolve();
      else reject(new Error(`Redis was not emptied: ${reply}`));
    });
  });
}
