/** Sheds load: while this process cannot keep up, status reads are refused, and when that is not enough, everything. */

import { constants, type NodeGCPerformanceDetail, PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { nodeFlags } from '../config/load.ts';
import type { Lane } from '../pis/operations.ts';
import { GatewayError } from '../request/errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

const sheddings = ['nothing', 'status-reads', 'everything'] as const;

/** Which requests of TPPs are refused. The admin listener is never affected. */
export type Shedding = (typeof sheddings)[number];

/** How much of its capacity this process uses. */
export interface LoadReading {
  /** Mean delay of the event loop since the last reading. Milliseconds. */
  readonly delayMs: number;
  /** What the last full garbage collection left in the old generation, as a part of its limit: 0 to 1. */
  readonly heap: number;
}

/** Event loop delays, in milliseconds: status reads are refused, every request is refused, shedding ends. */
const lateMs = 200;
const tooLateMs = 1_000;
const onTimeMs = 100;

/**
 * Parts of the heap limit: every request is refused, shedding ends. From 80 % on, V8 ends the process when four full
 * collections in a row took most of the time.
 */
const fullHeap = 0.78;
const freeHeap = 0.7;
/**
 * Readings of the delay, one every half second, after which the last reading of the heap is ignored. While everything is
 * refused, hardly anything is allocated, and no collection may follow that shows free memory. If the heap is still full,
 * the next requests cause a collection, which starts shedding again.
 */
const heapReadingLifetime = 20;

/** Interval of the timer whose delay is measured, and the time that one reading covers. Milliseconds. */
const timerMs = 20;
const readingMs = 500;

export interface LoadShedder {
  /** @throws GatewayError OVERLOADED if requests of this lane are shed at the moment */
  admit(lane: Lane): void;
  /** What is refused at the moment. */
  shedding(): Shedding;
  /** Whether to skip work that can wait, such as polls: sooner than any request is refused. */
  isBusy(): boolean;
  /** Measures until it is stopped. */
  start(): void;
  stop(): void;
}

/** @param onChange called with what is shed from now on, and the reading that caused it */
export function createLoadShedder(onChange: (shedding: Shedding, reading: LoadReading) => void): LoadShedder {
  let shedding: Shedding = 'nothing';
  let timer: NodeJS.Timeout | undefined;
  let delayMs = 0;
  let heap = 0;
  const hysteresis = createHysteresis();
  const change = (next: Shedding) => {
    if (next === shedding) return;
    shedding = next;
    onChange(shedding, { delayMs, heap });
  };
  const delays = createDelayReader((readMs) => {
    delayMs = readMs;
    change(hysteresis.delayed(delayMs));
  });
  const collections = new PerformanceObserver((list) => {
    if (!list.getEntries().some(isFullCollection)) return;
    heap = heapInUse();
    change(hysteresis.collected(heap));
  });
  return {
    shedding: () => shedding,
    admit(lane) {
      if (shedding === 'nothing' || (shedding === 'status-reads' && lane !== 'status')) return;
      throw new GatewayError('OVERLOADED', 'The gateway is overloaded; nothing was sent. Try again.');
    },
    isBusy: () => shedding !== 'nothing' || delayMs >= onTimeMs,
    start() {
      timer = setInterval(delays, timerMs).unref();
      collections.observe({ entryTypes: ['gc'] });
    },
    stop() {
      clearInterval(timer);
      collections.disconnect();
    },
  };
}

/** Logs when shedding begins, changes and ends, and sets its metric. */
export function reportShedding(
  log: Log,
  metrics: Metrics,
): (shedding: Shedding, reading: LoadReading) => void {
  return (shedding, { delayMs, heap }) => {
    for (const what of sheddings) metrics.set('penstock_shedding', { what }, Number(what === shedding));
    const fields = { shed: shedding, delayMs: Math.round(delayMs), heapPercent: Math.round(heap * 100) };
    if (shedding === 'nothing') log('info', 'overload ended', fields);
    else log('warn', 'overloaded: refusing some requests', fields);
  };
}

/** Node's types know `detail` only from the documentation of the entries of type gc. */
const isFullCollection = (entry: { readonly detail?: NodeGCPerformanceDetail; readonly name: string }) =>
  entry.detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;

/** Called by a timer. Not `monitorEventLoopDelay`: each `reset` loses the delay that is in progress. */
function createDelayReader(read: (delayMs: number) => void): () => void {
  let sinceMs = performance.now();
  let ticks = 0;
  return () => {
    ticks++;
    const nowMs = performance.now();
    const tookMs = nowMs - sinceMs;
    if (tookMs < readingMs) return;
    read(Math.max(0, tookMs / ticks - timerMs));
    sinceMs = nowMs;
    ticks = 0;
  };
}

interface Hysteresis {
  /** Takes a reading of the event loop's delay. @returns what is to be shed */
  delayed(delayMs: number): Shedding;
  /** Takes the part of the heap that a full collection left in use. @returns what is to be shed */
  collected(heap: number): Shedding;
}

/**
 * Decides what is shed. Two delays in a row must agree, because one long task is not overload. One reading of the heap
 * is enough: it contains no garbage, and the heap may be exhausted before a second one.
 */
export function createHysteresis(): Hysteresis {
  let shedding: Shedding = 'nothing';
  let heap = 0;
  let readingsSinceCollection = 0;
  let lastMs = 0;
  return {
    delayed(delayMs) {
      const [lower, higher] = [Math.min(lastMs, delayMs), Math.max(lastMs, delayMs)];
      lastMs = delayMs;
      if (++readingsSinceCollection > heapReadingLifetime) heap = 0;
      if (lower >= tooLateMs) shedding = 'everything';
      else if (lower >= lateMs && shedding === 'nothing') shedding = 'status-reads';
      else if (higher < onTimeMs && heap < freeHeap) shedding = 'nothing';
      return shedding;
    },
    collected(left) {
      heap = left;
      readingsSinceCollection = 0;
      if (heap >= fullHeap) shedding = 'everything';
      return shedding;
    },
  };
}

function heapInUse(): number {
  const sizes = getHeapSpaceStatistics().map((space) =>
    isYoung(space.space_name) ? 0 : space.space_used_size,
  );
  return sizes.reduce((sum, size) => sum + size) / heapLimit;
}

/** The young generation has a limit of its own. */
const isYoung = (space: string) => space.startsWith('new_');

/**
 * Bytes of the old generation. Node's own limit contains the young generation as well: with a small
 * `--max-old-space-size` that is 192 MiB that the old generation can never use, with the default limit hardly anything.
 */
const heapLimit = ((): number => {
  const configuredMiB = [...nodeFlags().matchAll(/--max[-_]old[-_]space[-_]size[= ](\d+)/g)].at(-1)?.[1];
  return configuredMiB === undefined
    ? getHeapStatistics().heap_size_limit
    : Number(configuredMiB) * 1024 * 1024;
})();
