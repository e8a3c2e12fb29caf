/** Starts a server as a process, waits until it listens, and stops it. */

import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { pinnedCommand } from './cores.ts';

/** The command line and the environment variables of a program. */
export interface Launch {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface RunningProgram {
  readonly pid: number;
  /** @throws Error with the output of the process if the process has exited */
  assertRunning(): void;
  /** Stops the process; resolves after its exit. */
  stop(): Promise<void>;
}

/** Maximum time from the start of a server until it listens, in milliseconds. */
const timeoutMs = 20_000;

/**
 * @param port the port on which the program listens when it is ready
 * @param logFile the file that receives the output of the program
 * @throws Error if the program exits before it listens, or does not listen within 20 seconds
 */
export async function startProgram(
  { command, env = {} }: Launch,
  port: number,
  cores: readonly number[],
  logFile: string,
): Promise<RunningProgram> {
  const [program = '', ...args] = pinnedCommand(cores, command);
  const log = openSync(logFile, 'w');
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', log, log] });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let exited = false;
  const killChild = () => void child.kill('SIGKILL');
  const onExit = () => {
    exited = true;
    process.off('exit', killChild);
    resolve();
  };
  child.once('exit', onExit).once('error', onExit);
  process.once('exit', killChild);
  const stop = async () => {
    child.kill('SIGTERM');
    const inTime = await Promise.race([ended.then(() => true), setTimeout(3_000, false, { ref: false })]);
    if (!inTime) child.kill('SIGKILL');
    await ended;
  };

  const failed = (how: string) =>
    new Error(`${command.join(' ')} ${how}. Output:\n${readFileSync(logFile, 'utf8').slice(0, 2_000)}`);

  const deadline = performance.now() + timeoutMs;
  while (!(await listens(port))) {
    if (exited || performance.now() > deadline) {
      await stop();
      throw failed(`does not listen on port ${port}`);
    }
    await setTimeout(20);
  }
  return {
    pid: child.pid ?? 0,
    stop,
    assertRunning() {
      if (exited) throw failed('exited during the measurement');
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
