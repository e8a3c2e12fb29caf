/**
 * Starts programs by a small shell: to fork this process, which has hundreds of megabytes, takes much longer. They never outlive
 * this process.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { until } from './within.ts';

/** A program without input and output. */
export interface LaunchedChild {
  /** Has no effect if the program has ended. */
  kill(signal: NodeJS.Signals): void;
  hasEnded(): boolean;
}

/**
 * Reads a command, and one that cleans up behind it, and reports the start and the end of the program. When the system closes its input,
 * because this process has ended for any reason, the shell cleans up and kills its process group.
 */
const script = `
  cleanUp=:
  while read -r number && read -r command && read -r end; do
    cleanUp="$cleanUp; $end"
    { eval "exec $command" > /dev/null 2>&1 & echo "started $number $!"; wait $!; echo "ended $number"; } &
  done
  eval "$cleanUp"
  kill -9 0
`;

interface Launcher {
  readonly shell: ChildProcessByStdio<Writable, Readable, null>;
  /** The process ids, by the number of the start. */
  readonly started: Map<string, number>;
  readonly ended: Set<string>;
}

let launcher: Launcher | undefined;
let count = 0;

/** @param folder is removed when this process ends without having done it */
export async function launchChild(
  program: string,
  args: readonly string[],
  folder: string,
): Promise<LaunchedChild> {
  launcher ??= startLauncher();
  const { shell, started, ended } = launcher;
  count += 1;
  const number = String(count);
  shell.stdin.write(`${number}\n${[program, ...args].map(quoted).join(' ')}\nrm -rf ${quoted(folder)}\n`);
  await until(10_000, `${program} is started`, () => started.has(number));
  const pid = started.get(number) ?? 0;
  return {
    kill: (signal) => void (ended.has(number) || process.kill(pid, signal)),
    hasEnded: () => ended.has(number),
  };
}

const quoted = (word: string) => `'${word.replaceAll("'", String.raw`'\''`)}'`;

function startLauncher(): Launcher {
  // A process group of its own: an interrupt from the keyboard would end the shell as well.
  const shell = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
  const launched: Launcher = { shell, started: new Map(), ended: new Set() };
  let text = '';
  shell.stdout.setEncoding('utf8').on('data', (more: string) => {
    const lines = (text + more).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const [what, number = '', pid] = line.split(' ');
      if (what === 'started') launched.started.set(number, Number(pid));
      else launched.ended.add(number);
    }
  });
  shell.unref();
  for (const stream of [shell.stdin, shell.stdout])
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
  return launched;
}
