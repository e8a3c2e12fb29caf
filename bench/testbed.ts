/** The environment of the measurements: a bank, Redis, and one contender at a time, on separate cores. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { redisProgram } from '../test/kit/find-redis.ts';
import { temporaryFolder } from '../test/kit/folder.ts';
import { createAuthority } from '../test/kit/openssl.ts';
import { freePort } from '../test/kit/ports.ts';
import { startPostgres } from '../test/kit/postgres.ts';
import { sendRedisCommand } from '../test/kit/redis.ts';
import { startRedisProcess } from '../test/kit/redis-process.ts';
import type { TestScope } from '../test/kit/test-scope.ts';
import type { Contender, TlsFiles } from './contenders/contender.ts';
import { nginxBank } from './contenders/nginx.ts';
import { runOnNode } from './contenders/node.ts';
import { anyCores, assignCores, type CoreAssignment, pinThisProcess } from './measure/cores.ts';
import { type Launch, startProgram } from './measure/program.ts';
import { isInstalled } from './prerequisites.ts';

/** A started contender. */
export interface RunningServer {
  readonly port: number;
  readonly pids: readonly number[];
}

/** How contenders connect to the bank. `tls`: with the client certificate that it requires. */
export type Upstream = 'plain' | 'tls';

export interface Testbed {
  readonly cores: CoreAssignment;
  readonly upstreamPort: number;
  /** 0 if no Redis is installed. */
  readonly redisPort: number;
  /** Starts a contender on an empty Redis, runs `act`, and stops the contender. @param upstream default: plain */
  withContender<Result>(
    contender: Contender,
    act: (server: RunningServer) => Promise<Result>,
    upstream?: Upstream,
  ): Promise<Result>;
}

/**
 * @param life stops the bank and Redis at its end
 * @param processes of the largest contender; `undefined` for measurements in which time does not count: they use any core
 * @param bankDelayMs how long the bank takes for each answer
 */
export async function openTestbed(
  life: TestScope,
  processes: number | undefined,
  bankDelayMs = 0,
): Promise<Testbed> {
  const cores = processes === undefined ? anyCores : assignCores(processes);
  pinThisProcess(cores.others);
  const withoutDisk = ['--save', '', '--appendonly', 'no'];
  const redisPort = redisProgram() ? (await startRedisProcess(life, () => withoutDisk)).port : 0;
  const startBank = async (tls?: TlsFiles) => {
    const folder = temporaryFolder(life);
    const port = await freePort();
    const log = join(folder, 'bank.log');
    const bank = await startProgram(
      bankLaunch({ port, folder, delayMs: bankDelayMs }, tls),
      port,
      cores.others,
      log,
    );
    life.after(() => bank.stop());
    return port;
  };
  const upstreamPort = await startBank();
  let postgres: ReturnType<typeof startPostgres> | undefined;
  let tlsBank: ReturnType<typeof startTlsBank> | undefined;
  const startTlsBank = async () => {
    const authority = createAuthority(life);
    const filesOf = (name: string) => {
      const { certFile, keyFile } = authority.issue(name);
      return { caFile: authority.certFile, certFile, keyFile };
    };
    return { port: await startBank(filesOf('bank')), tls: filesOf('gateway') };
  };

  return {
    cores,
    upstreamPort,
    redisPort,
    async withContender(contender, act, upstream = 'plain') {
      if (upstream === 'tls') tlsBank ??= startTlsBank();
      const bank = upstream === 'tls' ? await tlsBank : undefined;
      if (redisPort) await sendRedisCommand(redisPort, 'FLUSHALL');
      if (contender.requiredProgram === 'postgres') postgres ??= startPostgres(life);
      const postgresUrl = postgres ? await emptyDatabase(postgres) : '';
      const contenderFolder = temporaryFolder(life);
      const port = await freePort();
      const surroundings = {
        ...{ port, redisPort, postgresUrl, folder: contenderFolder },
        upstreamPort: bank?.port ?? upstreamPort,
        upstreamTls: bank?.tls,
      };
      await contender.prepare?.(surroundings);
      const launches = contender.launches(surroundings);
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

/** @returns the address of a database without tables */
async function emptyDatabase(server: ReturnType<typeof startPostgres>): Promise<string> {
  const { url } = await server;
  const client = new Client(url);
  await client.connect();
  await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public').finally(() => client.end());
  return url;
}

interface BankSettings {
  readonly port: number;
  readonly folder: string;
  readonly delayMs: number;
}

/** nginx cannot delay an answer. */
function bankLaunch({ port, folder, delayMs }: BankSettings, tls?: TlsFiles): Launch {
  if (delayMs === 0 && isInstalled('nginx')) return nginxBank({ port, folder }, tls);
  return runOnNode('programs/node-bank.ts', [
    port,
    delayMs,
    ...(tls ? [tls.caFile, tls.certFile, tls.keyFile] : []),
  ]);
}
