/** The process of `startCommandRunner`. */

import { runCommandLine } from '../../src/commands/command-line.ts';
import type { CommandOrder, CommandResult } from './command-runner.ts';

const written = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr'] as const) {
  const stream = process[name];
  stream.setMaxListeners(0); // a command adds one for each of its texts
  const write = (text: string) => {
    written[name] += text;
    return true;
  };
  Object.assign(stream, { write });
}

process.on('message', async ({ args, variables }: CommandOrder) => {
  const before = { ...process.env };
  Object.assign(process.env, variables);
  process.exitCode = 0;
  await runCommandLine(args);
  for (const name of Object.keys(variables)) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  process.send?.({ ...written, exitCode: Number(process.exitCode) } satisfies CommandResult);
  Object.assign(written, { stdout: '', stderr: '' });
});
