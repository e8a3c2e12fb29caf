/** How a server fares over time: memory, delay of its event loop, open files; and whether that grows. */

import { existsSync, readFileSync } from 'node:fs';
import { setInterval } from 'node:timers/promises';
import { openFiles } from '../measure/proc.ts';
import { median, slope } from '../measure/statistics.ts';

/** One second. */
interface Vitals {
  readonly atMs: number;
  readonly rssMiB: number;
  readonly heapMiB: number;
  /** 99 % of the event loop's turns came no later than this. */
  readonly delayP99Ms: number;
  readonly openFiles: number;
}

/** What is done meanwhile, second by second. @param file that `programs/vitals.ts` writes to. @param pids of which the first counts */
export async function vitalsIn(
  file: string,
  [pid = 0]: readonly number[],
  act: () => Promise<void>,
): Promise<readonly Vitals[]> {
  const files: number[] = [];
  const over = new AbortController();
  const counting = (async () => {
    for await (const _ of setInterval(1_000, undefined, { signal: over.signal })) files.push(openFiles(pid));
  })().catch((thrown: unknown) => {
    if (!over.signal.aborted) throw thrown;
  });
  const linesBefore = linesOf(file).length;
  await act();
  over.abort();
  await counting;
  return linesOf(file)
    .slice(linesBefore)
    .map((line, second) => ({ ...JSON.parse(line), openFiles: files[second] ?? files.at(-1) ?? 0 }));
}

const linesOf = (file: string): readonly string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];

/** The part in the beginning that is not looked at. */
const warmUp = 0.2;
/** What may be added in the time that is looked at, of what there was: less is noise. */
const flatShare = 0.05;

/** A row each: name, median of the first and the last tenth after the warm-up, growth a minute, flat or not. */
export function verdictsOn(all: readonly Vitals[]): readonly (readonly string[])[] {
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
