/** Runs wrk, the load generator, and parses its output. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pinnedCommand } from './cores.ts';
import type { BenchRequest, LoadResult } from './load.ts';

/** How to install wrk. */
export const wrkInstallHint = 'apt-get install wrk, or brew install wrk';

/** Runs wrk; each POST has a new X-Request-ID. */
export async function runWrk(
  { method, path, headers, body = '' }: BenchRequest,
  target: { readonly port: number; readonly connections: number; readonly seconds: number },
  cores: readonly number[],
): Promise<LoadResult> {
  const { port, connections, seconds } = target;
  const named = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const script = join(import.meta.dirname, 'wrk.lua');
  const [program = '', ...args] = pinnedCommand(cores, [
    ...['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, ...named],
    ...[`http://127.0.0.1:${port}${path}`, '--', method, body, randomBytes(4).toString('hex')],
  ]);
  const { stdout } = await promisify(execFile)(program, args, { timeout: (seconds + 30) * 1_000 });
  return parseWrk(stdout);
}

/** @param output ends with the line of `done` in wrk.lua @throws Error without that line */
export function parseWrk(output: string): LoadResult {
  const [line] = /^\{.*\}$/m.exec(output) ?? [];
  if (line === undefined) throw new Error(`wrk printed no result: ${output}`);
  const { requests, microseconds, p50, p99, failed } = JSON.parse(line);
  return { requests, seconds: microseconds / 1e6, p50Ms: p50 / 1e3, p99Ms: p99 / 1e3, errors: failed };
}
