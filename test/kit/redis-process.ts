/** One redis-server as a child process that a test can freeze and kill. It never outlives the tests. */

import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LaunchedChild, launchChild } from './child-launcher.ts';
import { howToGetRedis, redisProgram } from './find-redis.ts';
import { freePort } from './ports.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

export interface RedisProcess {
  readonly port: number;
  /** Its working directory, which is removed at the end. */
  readonly folder: string;
  /** Sends SIGSTOP: connections stay open, and nothing answers. */
  freeze(): void;
  /** Sends SIGCONT. */
  thaw(): void;
  /** Sends SIGKILL, and waits for the end of the process. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
}

/**
 * Returns when the server answers.
 *
 * @param argsFor further arguments of redis-server
 */
export async function startRedisProcess(
  life: TestScope,
  argsFor: (port: number, folder: string) => readonly string[] = () => [],
): Promise<RedisProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-redis-'));
  let child: LaunchedChild | undefined;
  const kill = async () => {
    child?.kill('SIGKILL');
    await until(5_000, 'redis-server ends', () => child?.hasEnded() ?? true);
  };
  life.after(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const launch = async (port: number) => {
    child = await launchServer(port, folder, argsFor(port, folder));
    return isAnswering(port, child);
  };

  let port = await freePort();
  for (let tries = 1; !(await launch(port)); tries++) {
    if (tries === 3) throw new Error('redis-server ends as soon as it is started');
    port = await freePort(); // another process has taken the port
  }
  return {
    port,
    folder,
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    kill,
    async restart() {
      await kill();
      if (!(await launch(port))) throw new Error(`redis-server does not start again on port ${port}`);
    },
  };
}

function launchServer(port: number, folder: string, args: readonly string[]): Promise<LaunchedChild> {
  const program = redisProgram();
  if (!program) throw new Error(`no redis-server to start: ${howToGetRedis}`);
  return launchChild(
    program,
    [...args, '--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
    folder,
  );
}

/** Waits until the server answers; false if it ended instead. */
async function isAnswering(port: number, child: LaunchedChild): Promise<boolean> {
  let pong = false;
  await until(10_000, `redis-server answers on port ${port}`, async () => {
    pong = await ping(port);
    return pong || child.hasEnded();
  });
  return pong && !child.hasEnded();
}

function ping(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(500, () => socket.destroy());
    socket.on('data', (data) => {
      resolve(/^(\+PONG|-NOAUTH)/.test(data.toString()));
      socket.destroy();
    });
    socket.on('error', () => {}).on('close', () => resolve(false));
  });
}
