/**
 * Runs penstock commands one after the other in a child process: their output and exit codes are those of a command with a process
 * of its own, whose start takes much longer than most commands.
 */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { cleanVariables, root } from './command.ts';
import { endWith, type TestScope } from './test-scope.ts';
import { within } from './within.ts';

/** What a command has printed, and its exit code. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command line, as the child process receives it. */
export interface CommandOrder {
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * Runs a command to its end.
 *
 * @param args      what follows `penstock`
 * @param variables environment variables besides those of this process
 */
export type RunCommand = (
  args: readonly string[],
  variables?: CommandOrder['variables'],
) => Promise<CommandResult>;

/** Starts the process at the first command; it ends with the scope. */
export function startCommandRunner(life: TestScope): RunCommand {
  let send: ((order: CommandOrder) => Promise<CommandResult>) | undefined;
  let previous: Promise<unknown> = Promise.resolve();
  return (args, variables = {}) => {
    send ??= startProcess(life);
    const sendNext = send;
    const result = previous.then(() =>
      within(60_000, `penstock ${args.join(' ')}`, sendNext({ args, variables })),
    );
    previous = result.catch(() => {});
    return result;
  };
}

function startProcess(life: TestScope): (order: CommandOrder) => Promise<CommandResult> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'command-runner-process.ts')], {
    cwd: root,
    env: cleanVariables(),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  endWith(life, () => child.kill('SIGKILL'));
  let pending: PromiseWithResolvers<CommandResult> | undefined;
  child.on('message', (result: CommandResult) => pending?.resolve(result));
  child.once('exit', () => pending?.reject(new Error('the process of the commands has ended')));
  return (order) => {
    pending = Promise.withResolvers();
    child.send(order);
    return pending.promise;
  };
}
