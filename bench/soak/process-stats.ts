/** A server's memory, event-loop delay and open files over time, and whether they grow. */

import { existsSync, readFileSync } from 'node:fs';
import { setInterval } from 'node:timers/promises';
import { openFiles } from '../measure/proc.ts';
import { median, slope } from '../measure/statistics.ts';

/** The values of one second. */
interface ProcessStats {
  readonly atMs: number;
  readonly rssMiB: number;
  readonly heapMiB: number;
  /** The 99th percentile of the event-loop delay. */
  readonly delayP99Ms: number;
  readonly openFiles: number;
}

/** Records one entry per second while `act` runs. @param file the file that `programs/vitals.ts` writes @param pids only the first is used */
export async function recordStats(
  file: string,
  [pid = 0]: readonly number[],
  act: () => Promise<void>,
): Promise<readonly ProcessStats[]> {
  const files: number[] = [];
  const stopped = new AbortController();
  const counting = (async () => {
    for await (const _ of setInterval(1_000, undefined, { signal: stopped.signal }))
      files.push(openFiles(pid));
  })().catch((thrown: unknown) => {
    if (!stopped.signal.aborted) throw thrown;
  });
  const linesBefore = linesOf(file).length;
  await act();
  stopped.abort();
  await counting;
  return linesOf(file)
    .slice(linesBefore)
    .map((line, second) => ({ ...JSON.parse(line), openFiles: files[second] ?? files.at(-1) ?? 0 }));
}

const linesOf = (file: string): readonly string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];

/** The share of the beginning that is ignored. */
const warmUp = 0.2;
/** Growth below this share of the first value is noise. */
const flatShare = 0.05;

/** One row per value: name, median of the first and the last tenth after the warm-up, growth per minute, flat or not. */
export function growthTable(all: readonly ProcessStats[]): readonly (readonly string[])[] {
  const vitals = all.slice(Math.floor(all.length * warmUp));
  const tenth = Math.max(1, Math.floor(vitals.length / 10));
  const rows = [
    ['RSS, MiB', 'rssMiB'],
    ['heap, MiB', 'heapMiB'],
    ['event loop delay p99, ms', 'delayP99Ms'],
    ['open files', 'openFiles'],
  ] as const;
  return rows.map(([name, field]) => {
    const first = median(vitals.slice(0, tenth).map((second) => second[field]));
    const last = median(vitals.slice(-tenth).map((second) => second[field]));
    const perMinute = slope(vitals.map((second) => [second.atMs / 60_000, second[field]]));
    const grown = (perMinute * vitals.length) / 60;
    const verdict = grown <= flatShare * first ? 'flat' : 'GROWS';
    return [name, first.toFixed(1), last.toFixed(1), perMinute.toFixed(2), verdict];
  });
}
