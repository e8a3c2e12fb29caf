/** Sheds load: while this process cannot keep up, status reads are refused, and when that is not enough, everything. */

import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { nodeFlags } from '../config/load.ts';
import { GatewayError } from '../flow/errors.ts';
import type { Lane } from '../pis/operations.ts';
import type { Shedding } from '../telemetry/observe-load.ts';

/** How this process is doing. */
export interface Reading {
  /** How late the event loop has come to its work since the last reading: the mean, in milliseconds. */
  readonly delayMs: number;
  /** The part of the heap, as far as it may grow for what lasts, that is in use: 0 to 1. */
  readonly heap: number;
}

/** From where on it is too much for status reads, for anything, and below what it is over. */
const late: Reading = { delayMs: 200, heap: 1 };
const tooLate: Reading = { delayMs: 1_000, heap: 0.9 };
const well: Reading = { delayMs: 100, heap: 0.8 };

/** How often the event loop is asked for a moment, and for how long its delays make one reading. Milliseconds. */
const askEveryMs = 20;
const readingMs = 500;
/** How many readings in a row must agree before anything changes: one long task is no overload. */
const inARow = 2;

export interface Overload {
  /** @throws GatewayError OVERLOADED if requests of this lane are shed at the moment */
  admit(lane: Lane): void;
  /** Looks regularly from now on, until it is stopped. */
  start(): void;
  stop(): void;
}

/**
 * Nothing is shed yet.
 *
 * @param changed told what is shed from now on
 */
export function createOverload(changed: (shedding: Shedding, reading: Reading) => void): Overload {
  let shedding: Shedding = 'nothing';
  let timer: NodeJS.Timeout | undefined;
  const judge = createJudge();
  const read = (reading: Reading) => {
    const before = shedding;
    shedding = judge(reading);
    if (shedding !== before) changed(shedding, reading);
  };
  return {
    admit(lane) {
      if (shedding === 'nothing' || (shedding === 'status-reads' && lane !== 'status')) return;
      throw new GatewayError('OVERLOADED', 'The gateway has more to do than it can; nothing was sent.');
    },
    start() {
      timer = setInterval(createDelayReader(read), askEveryMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}

/** Asked at each turn of a timer. Not `monitorEventLoopDelay`: each `reset` costs it the delay that is on its way. */
function createDelayReader(read: (reading: Reading) => void): () => void {
  let sinceMs = performance.now();
  let turns = 0;
  return () => {
    turns++;
    const nowMs = performance.now();
    const tookMs = nowMs - sinceMs;
    if (tookMs < readingMs) return;
    read({ delayMs: Math.max(0, tookMs / turns - askEveryMs), heap: heapInUse() });
    sinceMs = nowMs;
    turns = 0;
  };
}

/** Says at each reading what is to be shed: more at once when it was worse twice, nothing when it was well twice. */
export function createJudge(): (reading: Reading) => Shedding {
  let shedding: Shedding = 'nothing';
  let recent: readonly Reading[] = [];
  const all = (test: (reading: Reading) => boolean) => recent.length === inARow && recent.every(test);
  return (reading) => {
    recent = [...recent, reading].slice(-inARow);
    if (all(reaches(tooLate))) shedding = 'everything';
    else if (shedding === 'nothing' && all(reaches(late))) shedding = 'status-reads';
    else if (all((each) => !reaches(well)(each))) shedding = 'nothing';
    return shedding;
  };
}

const reaches = (limit: Reading) => (reading: Reading) =>
  reading.delayMs >= limit.delayMs || reading.heap >= limit.heap;

function heapInUse(): number {
  const sizes = getHeapSpaceStatistics().map((space) =>
    isYoung(space.space_name) ? 0 : space.space_used_size,
  );
  return sizes.reduce((sum, size) => sum + size) / mostHeap;
}

/** What is new lies there until it has lasted; there is always room for it. */
const isYoung = (space: string) => space.startsWith('new_');

/**
 * Bytes. V8 counts what may be new in its own limit: 192 MiB besides those of a small `--max-old-space-size`, which would
 * never be reached. A limit that Node makes of the machine's memory has hardly any besides.
 */
const mostHeap = ((): number => {
  const asked = [...nodeFlags().matchAll(/--max[-_]old[-_]space[-_]size[= ](\d+)/g)].at(-1)?.[1];
  return asked === undefined ? getHeapStatistics().heap_size_limit : Number(asked) * 1024 * 1024;
})();
