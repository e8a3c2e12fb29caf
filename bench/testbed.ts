/** Where the contenders stand, one after the other: the bank and Redis behind them, cores apart. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { redisProgram } from '../test/kit/find-redis.ts';
import { temporaryFolder } from '../test/kit/folder.ts';
import type { Life } from '../test/kit/life.ts';
import { freePort } from '../test/kit/ports.ts';
import { startRedisProcess } from '../test/kit/redis-process.ts';
import type { Contender } from './contenders/contender.ts';
import { nginxBank } from './contenders/nginx.ts';
import { chooseCores, moveTo, type Places } from './measure/cores.ts';
import { type Launch, startProgram } from './measure/program.ts';
import { isInstalled } from './needs.ts';
import { flushAll } from './redis.ts';

/** A server that serves. */
export interface OnStage {
  readonly port: number;
  readonly pids: readonly number[];
}

export interface Stage {
  readonly places: Places;
  readonly upstreamPort: number;
  /** Starts a contender on an empty Redis, does something with it, and ends it. */
  with<Result>(contender: Contender, act: (server: OnStage) => Promise<Result>): Promise<Result>;
}

/** @param processes of the largest contender. @param life that ends the bank and Redis */
export async function openStage(life: Life, processes: number): Promise<Stage> {
  const places = chooseCores(processes);
  moveTo(places.others);
  const withoutDisk = () => ['--save', '', '--appendonly', 'no'];
  const redisPort = redisProgram() ? (await startRedisProcess(life, withoutDisk)).port : undefined;
  const folder = temporaryFolder(life);
  const upstreamPort = await freePort();
  const bank = await startProgram(
    bankOn(upstreamPort, folder),
    upstreamPort,
    places.others,
    join(folder, 'bank.log'),
  );
  life.after(() => bank.stop());

  return {
    places,
    upstreamPort,
    async with(contender, act) {
      if (redisPort) await flushAll(redisPort);
      const own = temporaryFolder(life);
      const port = await freePort();
      const launches = contender.launches({ port, upstreamPort, redisPort: redisPort ?? 0, folder: own });
      const running = await Promise.all(
        launches.map((launch, at) => startProgram(launch, port, places.server, join(own, `${at}.log`))),
      );
      try {
        const result = await act({ port, pids: running.map(({ pid }) => pid) });
        for (const program of running) program.mustRun();
        return result;
      } finally {
        await Promise.all(running.map((program) => program.stop()));
        rmSync(own, { recursive: true, force: true });
      }
    },
  };
}

const bankOn = (port: number, folder: string): Launch =>
  isInstalled('nginx')
    ? nginxBank({ port, folder })
    : { command: [process.execPath, join(import.meta.dirname, 'programs/node-bank.ts'), String(port)] };
