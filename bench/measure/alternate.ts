/** Sends requests to two environments of one gateway in turn, and measures the CPU time of each. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { pinnedCommand } from './cores.ts';
import type { BenchRequest } from './load.ts';

/** Where the requests of one environment go. */
export interface Target {
  readonly environment: string;
  readonly path: string;
}

/** A period with requests to one target. */
export interface AlternatingWindow {
  readonly environment: string;
  /** CPU time of the server per request, all threads. */
  readonly cpuMicros: number;
}

/** Long compared with a request, short compared with changes of the machine's speed. Milliseconds. */
const windowMs = 250;

/**
 * @param request without its path
 * @param targets two
 * @returns the windows in their order, without the first and the last one
 * @throws Error if a request failed
 */
export async function alternate(
  { method, headers, body = '' }: Omit<BenchRequest, 'path'>,
  targets: readonly Target[],
  {
    port,
    pids,
    seconds,
  }: { readonly port: number; readonly pids: readonly number[]; readonly seconds: number },
  cores: readonly number[],
): Promise<readonly AlternatingWindow[]> {
  const named = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const script = join(import.meta.dirname, 'alternate.lua');
  const [program = '', ...args] = pinnedCommand(cores, [
    ...['wrk', '-t1', '-c32', `-d${seconds}s`, '--timeout', '10s', '-s', script, ...named],
    ...[`http://127.0.0.1:${port}/`, '--', method, body, randomBytes(4).toString('hex'), String(windowMs)],
    ...targets.map(({ path }) => path),
    ...targets.map(({ environment }) => environment),
  ]);
  let isRunning = true;
  const running = promisify(execFile)(program, args, { timeout: (seconds + 30) * 1_000 }).finally(() => {
    isRunning = false;
  });
  /** By the window that begins then. */
  const cpuAt = new Map<number, number>();
  while (isRunning) {
    const now = monotonicMs();
    await setTimeout(windowMs - (now % windowMs) + 1);
    cpuAt.set(Math.floor(monotonicMs() / windowMs), cpuMicrosOf(pids));
  }
  const { stdout } = await running;
  const { windows, failed } = JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '{}');
  if (failed > 0) throw new Error(`${failed} requests failed`);
  const sent: readonly (readonly [number, number])[] = windows.toSorted(
    ([one]: readonly number[], [other]: readonly number[]) => (one ?? 0) - (other ?? 0),
  );
  return sent.slice(1, -1).flatMap(([at, count]) => {
    const [before, after] = [cpuAt.get(at), cpuAt.get(at + 1)];
    const target = targets[at % 2];
    if (before === undefined || after === undefined || !target) return [];
    return [{ environment: target.environment, cpuMicros: (after - before) / count }];
  });
}

const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;

/** All threads of the processes. Linux counts nanoseconds here, and hundredths of a second in `stat`. */
function cpuMicrosOf(pids: readonly number[]): number {
  return pids
    .flatMap((pid) =>
      readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/schedstat`),
    )
    .reduce((sum, file) => sum + Number(readFileSync(file, 'utf8').split(' ', 1)[0]) / 1_000, 0);
}
