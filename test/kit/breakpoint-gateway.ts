/** Starts a gateway that holds writes at exact steps, for a test that kills it there, or has it stand still. */

import { fail } from 'node:assert/strict';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { BreakpointGatewayOptions, BreakpointMessage } from './breakpoint-process.ts';
import { startChildReaper } from './child-reaper.ts';
import { cleanVariables } from './command.ts';
import type { Life } from './life.ts';
import { until } from './within.ts';

export interface BreakpointGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Waits until these writes are held at their steps. */
  reached(requestIds: readonly string[]): Promise<void>;
  /** Kills it (SIGKILL), and waits until it is gone. */
  kill(): Promise<void>;
  /** Stops it where it stands (SIGSTOP): connections stay, and nothing answers. */
  freeze(): void;
  /** Lets it go on (SIGCONT), and with it the writes that it holds. */
  thaw(): void;
}

/** A gateway that serves; killed at the end. */
export async function startBreakpointGateway(
  life: Life,
  order: BreakpointGatewayOptions,
): Promise<BreakpointGateway> {
  const script = join(import.meta.dirname, 'stepping-gateway.ts');
  const child = fork(script, [JSON.stringify(order)], {
    env: cleanVariables(),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const guard = startChildReaper(child);
  const told: BreakpointMessage[] = [];
  let isGone = false;
  child.on('message', (message) => void told.push(message as BreakpointMessage)); // what stepping-gateway.ts tells
  child.once('exit', () => {
    isGone = true;
    guard?.kill('SIGKILL');
  });
  const kill = async () => {
    child.kill('SIGKILL');
    await until(5_000, 'the gateway is gone', () => isGone);
  };
  life.after(kill);

  const serving = () => told.find((one) => one.kind === 'serving');
  await until(30_000, 'the gateway serves', () => isGone || serving() !== undefined);
  const { tppPort, adminPort } = serving() ?? fail('the gateway ended before it served');
  return {
    url: `http://127.0.0.1:${tppPort}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    reached: (requestIds) =>
      until(10_000, 'the writes are held at their steps', () => {
        const held = told.map((one) => (one.kind === 'reached' ? one.requestId : ''));
        return requestIds.every((requestId) => held.includes(requestId));
      }),
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    thaw() {
      child.kill('SIGCONT');
      child.send('go on');
    },
  };
}
