/** A server as a process of its own: started, waited for, and ended with all that it has started. */

import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { pinned } from './cores.ts';

/** How to start a program. */
export interface Launch {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface Running {
  readonly pid: number;
  /** @throws Error with what it said, if it has ended by itself */
  mustRun(): void;
  /** Ends it, and comes back when it is gone. */
  stop(): Promise<void>;
}

/** How long a server may take until it listens, and to end. Milliseconds. */
const patienceMs = 20_000;

/**
 * @param port that it listens on once it is ready
 * @param logFile where its output goes
 * @throws Error if it ends, or does not listen in time
 */
export async function startProgram(
  { command, env = {} }: Launch,
  port: number,
  cores: readonly number[],
  logFile: string,
): Promise<Running> {
  const [program = '', ...args] = pinned(cores, command);
  const log = openSync(logFile, 'w');
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', log, log] });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let over = false;
  const killed = () => void child.kill('SIGKILL');
  const end = () => {
    over = true;
    process.off('exit', killed);
    resolve();
  };
  child.once('exit', end).once('error', end);
  process.once('exit', killed);
  const stop = async () => {
    child.kill('SIGTERM');
    const inTime = await Promise.race([ended.then(() => true), setTimeout(3_000, false, { ref: false })]);
    if (!inTime) child.kill('SIGKILL');
    await ended;
  };

  const failed = (how: string) =>
    new Error(`${command.join(' ')} ${how}. It said:\n${readFileSync(logFile, 'utf8').slice(0, 2_000)}`);

  const deadline = performance.now() + patienceMs;
  while (!(await listens(port))) {
    if (over || performance.now() > deadline) {
      await stop();
      throw failed(`does not listen on port ${port}`);
    }
    await setTimeout(20);
  }
  return {
    pid: child.pid ?? 0,
    stop,
    mustRun() {
      if (over) throw failed('has ended while it was measured');
    },
  };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => {
        socket.destroy();
        resolve(true);
      })
      .once('error', () => resolve(false));
  });
}
