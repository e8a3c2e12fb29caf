/** The command line as a process of its own. */

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { temporaryFolder } from './folder.ts';
import type { Life } from './life.ts';
import { until, within } from './within.ts';

export const root = join(import.meta.dirname, '../..');

/** What a command has written so far and, when it has ended, how. */
export interface RunningCommand {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until the output holds a text. */
  waitForOutput(text: string): Promise<void>;
  /** The exit code, or the name of the signal that ended it. */
  exitCode(): Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
  /** Leaves what it writes in the pipe, which is full at some time, until it has exited. */
  stopReading(): void;
  readonly pid: number | undefined;
}

/** Starts a program, in the repository's folder if no other is named; killed when the test ends, if it still runs. */
export function startCommand(
  t: Life,
  program: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  folder = root,
): RunningCommand {
  const env = { ...cleanVariables(), ...variables };
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const written = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      written[stream] += text;
    });
  }
  const { promise: end, resolve } = Promise.withResolvers<number | string>();
  child.once('close', (code, signal) => resolve(code ?? signal ?? 'nothing'));
  child.once('error', (error) => resolve(error.message));
  t.after(() => child.kill('SIGKILL'));

  return {
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    waitForOutput: (text) => until(20_000, `the command says ${text}`, () => written.stdout.includes(text)),
    exitCode: () => within(30_000, 'the command to end', end),
    kill: (signal) => void child.kill(signal),
    stopReading() {
      child.stdout.pause();
      child.once('exit', () => child.stdout.resume()); // or it would never count as closed
    },
    pid: child.pid,
  };
}

/** The environment variables of this process, without those that would configure a gateway or Node. */
export const cleanVariables = (): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PENSTOCK|NODE)_/.test(name)));

/** A file with this text, such as a configuration; removed when the test ends. */
export function writeConfigFile(t: Life, text: string): string {
  const file = join(temporaryFolder(t), 'penstock.yaml');
  writeFileSync(file, text);
  return file;
}

/** The machine's own Node, if there is one that cannot run TypeScript by itself (before 24.14). */
export function findOlderNode(): string | undefined {
  const candidates = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'));
  return candidates.find((candidate) => existsSync(candidate) && isOlder(candidate));
}

function isOlder(node: string): boolean {
  const [major = 0, minor = 0] = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' })
    .split('.')
    .map(Number);
  return major < 24 || (major === 24 && minor < 14);
}
