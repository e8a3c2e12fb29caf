/** Alternates between two requests several times a second, and measures the CPU time of each in one process. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { pinnedCommand } from './cores.ts';
import type { BenchRequest } from './load.ts';

/** A period with requests of one variant. */
export interface AlternatingWindow {
  readonly variant: 0 | 1;
  readonly requests: number;
  /** CPU time of the server per request, all threads. */
  readonly cpuMicros: number;
}

/** Long compared with a request, short compared with changes of the machine's speed. Milliseconds. */
const windowMs = 250;

/**
 * @param requests the two variants, which differ in their paths only
 * @param environments that they ask for
 * @returns the windows in their order, without the first and the last one
 * @throws Error if a request failed
 */
export async function alternate(
  requests: readonly BenchRequest[],
  environments: readonly string[],
  {
    port,
    pids,
    seconds,
  }: { readonly port: number; readonly pids: readonly number[]; readonly seconds: number },
  cores: readonly number[],
): Promise<readonly AlternatingWindow[]> {
  const [{ method, headers, body = '' } = requests[0] as BenchRequest] = requests;
  const named = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const script = join(import.meta.dirname, 'alternate.lua');
  const [program = '', ...args] = pinnedCommand(cores, [
    ...['wrk', '-t1', '-c32', `-d${seconds}s`, '--timeout', '10s', '-s', script, ...named],
    ...[`http://127.0.0.1:${port}/`, '--', method, body, randomBytes(4).toString('hex'), String(windowMs)],
    ...requests.map(({ path }) => path),
    ...environments,
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
    if (before === undefined || after === undefined) return [];
    return [{ variant: at % 2 === 0 ? 0 : 1, requests: count, cpuMicros: (after - before) / count }] as const;
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
