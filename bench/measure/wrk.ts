/** wrk, the load generator: how it is called, and what it says in the end. */

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pinned } from './cores.ts';
import type { Load, Request } from './load.ts';

/** What to type so that there is one. */
export const howToGetWrk = 'apt-get install wrk, or brew install wrk';

/** Runs it; a POST bears a new X-Request-ID each time. */
export async function runWrk(
  { method, path, headers, body = '' }: Request,
  target: { readonly port: number; readonly connections: number; readonly seconds: number },
  cores: readonly number[],
): Promise<Load> {
  const { port, connections, seconds } = target;
  const named = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const script = join(import.meta.dirname, 'wrk.lua');
  const [program = '', ...args] = pinned(cores, [
    ...['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script, ...named],
    ...[`http://127.0.0.1:${port}${path}`, '--', method, body, randomBytes(4).toString('hex')],
  ]);
  const { stdout } = await promisify(execFile)(program, args, { timeout: (seconds + 30) * 1_000 });
  return parseWrk(stdout);
}

/** @param output that ends with the line of `done` in wrk.lua. @throws Error if there is none */
export function parseWrk(output: string): Load {
  const [line] = /^\{.*\}$/m.exec(output) ?? [];
  if (line === undefined) throw new Error(`wrk has not said what it counted: ${output}`);
  const { requests, microseconds, p50, p99, failed } = JSON.parse(line);
  return { requests, seconds: microseconds / 1e6, p50Ms: p50 / 1e3, p99Ms: p99 / 1e3, errors: failed };
}
