/** Runs commands as processes of their own. */

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { temporaryFolder } from './folder.ts';
import { endWith, type TestScope } from './test-scope.ts';
import { until, within } from './within.ts';

export const root = join(import.meta.dirname, '../..');

/** A running command, its output and its exit code. */
export interface RunningCommand {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until standard output contains this text. Rejects if the command ends before that. */
  waitForOutput(text: string): Promise<void>;
  /** Waits for the end. @returns the exit code, or the name of the signal */
  exitCode(): Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
  /** Stops reading standard output until the process exits: the pipe fills up. */
  stopReading(): void;
  readonly pid: number | undefined;
}

/** Starts a program, by default in the folder of the repository. Killed when the test ends. */
export function startCommand(
  t: TestScope,
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
  let hasEnded = false;
  child.once('close', (code, signal) => {
    hasEnded = true;
    resolve(code ?? signal ?? 'nothing');
  });
  child.once('error', (error) => resolve(error.message));
  endWith(t, () => child.kill('SIGKILL'));

  return {
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    waitForOutput: (text) =>
      until(20_000, `the command has printed ${text}`, () => {
        const hasPrinted = written.stdout.includes(text);
        if (hasEnded && !hasPrinted)
          throw new Error(`the command ended before it printed ${text}: ${written.stdout}${written.stderr}`);
        return hasPrinted;
      }),
    exitCode: () => within(30_000, 'the command to end', end),
    kill: (signal) => void child.kill(signal),
    stopReading() {
      child.stdout.pause();
      child.once('exit', () => child.stdout.resume()); // otherwise `close` is never emitted
    },
    pid: child.pid,
  };
}

/**
 * The environment variables of this process, except those that configure a gateway or Node. The compile cache changes no
 * behaviour, and halves the CPU time that a start takes.
 */
export const cleanVariables = (): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(PENSTOCK|NODE)_(?!COMPILE_CACHE$)/.test(name)),
  );

/** Writes a configuration file, removed when the test ends. */
export function writeConfigFile(t: TestScope, text: string): string {
  const file = join(temporaryFolder(t), 'penstock.yaml');
  writeFileSync(file, text);
  return file;
}

/** A Node on the PATH that is too old to run TypeScript (before 24.14), if there is one. */
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
