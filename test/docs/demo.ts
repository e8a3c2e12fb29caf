/** A copy of the repository on ports of its own, in which the commands of the documents are run. */

import { spawn } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { cleanVariables, root } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { freePort } from '../kit/ports.ts';
import { within } from '../kit/within.ts';

export interface Copy {
  /** The same text with the ports of this copy instead of those of the demo. */
  here(commands: string): string;
  /** The other way round. */
  asWritten(output: string): string;
  /** Runs a script with bash in this folder. @returns what it said, and its exit code */
  run(script: string): Promise<{ readonly said: string; readonly code: number | null }>;
}

const parts = ['package.json', 'package-lock.json', 'bin', 'src', 'config'];
/** Where the demo's ports are written. */
const withPorts = ['config/demo.yaml', 'src/commands/demo.ts'];

/** A clean copy; what is installed is that of the repository. Removed, and all that it started ended, with the test. */
export async function copyOfRepository(t: TestContext): Promise<Copy> {
  const folder = temporaryFolder(t);
  for (const part of parts) cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const ports: (readonly [string, string])[] = [];
  for (const port of ['8080', '9090', '9101', '9102', '9103']) ports.push([port, String(await freePort())]);
  const exchange = (from: 0 | 1, to: 0 | 1) => (given: string) =>
    ports.reduce((text, pair) => text.replaceAll(new RegExp(`\\b${pair[from]}\\b`, 'g'), pair[to]), given);
  const here = exchange(0, 1);
  for (const file of withPorts)
    writeFileSync(join(folder, file), here(readFileSync(join(folder, file), 'utf8')));

  return {
    here,
    asWritten: exchange(1, 0),
    async run(script) {
      // A group of its own: what the script leaves behind in the background ends with the test.
      const shell = spawn('bash', ['-c', script], {
        cwd: folder,
        env: cleanVariables(),
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const endAll = () => {
        try {
          process.kill(-Number(shell.pid), 'SIGKILL');
        } catch {
          // all of it has ended
        }
      };
      t.after(endAll);
      const ended = new Promise<number | null>((resolve) => shell.once('exit', resolve));
      const said = Promise.all([text(shell.stdout), text(shell.stderr)]).then((both) => both.join('\n'));
      const code = await within(90_000, 'the commands', ended);
      endAll();
      return { said: await said, code };
    },
  };
}
