/** Starts a gateway that pauses writes at breakpoints, for tests that kill or freeze it there. */

import { fail } from 'node:assert/strict';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { BreakpointGatewayOptions, BreakpointMessage } from './breakpoint-process.ts';
import { startChildReaper } from './child-reaper.ts';
import { cleanVariables } from './command.ts';
import { endWith, type TestScope } from './test-scope.ts';
import { until } from './within.ts';

export interface BreakpointGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Waits until these writes are paused at their breakpoints. */
  reached(requestIds: readonly string[]): Promise<void>;
  /** Sends SIGKILL, and waits for the end of the process. */
  kill(): Promise<void>;
  /** Sends SIGSTOP: connections stay open, and nothing answers. */
  freeze(): void;
  /** Sends SIGCONT, and lets the paused writes continue. */
  thaw(): void;
}

/** Returns when the gateway serves. */
export async function startBreakpointGateway(
  life: TestScope,
  options: BreakpointGatewayOptions,
): Promise<BreakpointGateway> {
  const script = join(import.meta.dirname, 'breakpoint-process.ts');
  const child = fork(script, [JSON.stringify(options)], {
    env: cleanVariables(),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const reaper = startChildReaper(child);
  const messages: BreakpointMessage[] = [];
  let hasEnded = false;
  child.on('message', (message) => void messages.push(message as BreakpointMessage)); // from breakpoint-process.ts
  child.once('exit', () => {
    hasEnded = true;
    reaper?.kill('SIGKILL');
  });
  const kill = async () => {
    child.kill('SIGKILL');
    await until(5_000, 'the gateway ends', () => hasEnded);
  };
  endWith(life, kill);

  const serving = () => messages.find((message) => message.kind === 'serving');
  await until(30_000, 'the gateway serves', () => hasEnded || serving() !== undefined);
  const { tppPort, adminPort } = serving() ?? fail('the gateway ended before it served');
  return {
    url: `http://127.0.0.1:${tppPort}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    reached: (requestIds) =>
      until(10_000, 'the writes are paused', () => {
        const paused = messages.map((message) => (message.kind === 'reached' ? message.requestId : ''));
        return requestIds.every((requestId) => paused.includes(requestId));
      }),
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    thaw() {
      child.kill('SIGCONT');
      child.send('continue');
    },
  };
}
