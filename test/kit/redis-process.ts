/** One redis-server as a child process, that can be frozen and killed, and never outlives the tests. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChildReaper } from './child-reaper.ts';
import { howToGetRedis, redisProgram } from './find-redis.ts';
import type { Life } from './life.ts';
import { freePort } from './ports.ts';
import { until } from './within.ts';

/** A server on a port of this machine. */
export interface RedisProcess {
  readonly port: number;
  /** Its folder, which goes when it ends. */
  readonly folder: string;
  /** Stops it where it stands (SIGSTOP): connections stay, and nothing answers. */
  freeze(): void;
  /** Lets it go on (SIGCONT). */
  thaw(): void;
  /** Kills it (SIGKILL), and waits until it is gone. */
  kill(): Promise<void>;
  /** Starts it again, empty, on the same port. */
  restart(): Promise<void>;
}

/** How to start a server. */
export interface Launch {
  /** Arguments beside the port, made when the port and the folder are known. */
  readonly args?: (port: number, folder: string) => readonly string[];
}

/** A server that answers; ends with the life it is given. */
export async function startRedisProcess(life: Life, { args = () => [] }: Launch = {}): Promise<RedisProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-redis-'));
  let child: ChildProcess | undefined;
  const kill = async () => {
    child?.kill('SIGKILL');
    await until(5_000, 'redis-server is gone', () => !child || hasEnded(child));
  };
  life.after(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const launch = async (port: number) => {
    child = spawnServer(port, folder, args(port, folder));
    return isAnswering(port, child);
  };

  let port = await freePort();
  for (let tries = 1; !(await launch(port)); tries++) {
    if (tries === 3) throw new Error('redis-server ends as soon as it is started');
    port = await freePort(); // somebody else was faster
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

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

function spawnServer(port: number, folder: string, args: readonly string[]): ChildProcess {
  const program = redisProgram();
  if (!program) throw new Error(`no redis-server to start: ${howToGetRedis}`);
  const child = spawn(program, [...args, '--port', String(port), '--bind', '127.0.0.1', '--dir', folder], {
    stdio: 'ignore',
  });
  child.on('error', () => {}); // it then has an exit code
  const guard = startChildReaper(child, folder);
  child.once('exit', () => guard?.kill('SIGKILL'));
  return child;
}

/** Whether the server answers, at last; false if it ended instead. */
async function isAnswering(port: number, child: ChildProcess): Promise<boolean> {
  let pong = false;
  await until(10_000, `redis-server answers on port ${port}`, async () => {
    pong = await ping(port);
    return pong || hasEnded(child);
  });
  return pong && !hasEnded(child);
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
