/**
 * Preloaded into a server (`node --import`): counts promises, timers and allocated bytes for a client of the Unix socket
 * BENCH_PROBE, which sends one command per line and receives one line of JSON for each (budgets/probe.ts).
 */

import { createHook } from 'node:async_hooks';
import { createServer } from 'node:net';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics } from 'node:v8';
import type { AsyncCounts, MemoryUse, ProbeCommand } from '../budgets/probe.ts';

const ownCode = /\/src\//;
const libraryCode = /\/node_modules\//;
/** Frames that are not the code that created a promise or a timer: Node's, and such as `Promise.then` and `new Promise`. */
const notTheCaller = /node:|new Promise|Promise\.|\(<anonymous>\)$/;

const counts = { promises: 0, timers: 0, libraryPromises: 0, libraryTimers: 0 };
const places = new Map<string, number>();

const hook = createHook({
  init(_id, type) {
    if (type !== 'PROMISE' && type !== 'Timeout') return;
    const place = stackFrames().find((frame) => !notTheCaller.test(frame)) ?? '';
    const isPromise = type === 'PROMISE';
    if (libraryCode.test(place)) counts[isPromise ? 'libraryPromises' : 'libraryTimers']++;
    if (libraryCode.test(place) || !ownCode.test(place)) return;
    counts[isPromise ? 'promises' : 'timers']++;
    const name = `${isPromise ? 'promise' : 'timer'}: ${place.trim().replace(/(file:)?\/.*\/src\//, '')}`;
    places.set(name, (places.get(name) ?? 0) + 1);
  },
});

function stackFrames(): readonly string[] {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 40;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return stack.split('\n').slice(3); // without the message and the two frames of this file
}

/** Node's types lack the details of a garbage collection. */
const isFull = (detail: unknown) =>
  (detail as { readonly kind?: number }).kind === constants.NODE_PERFORMANCE_GC_MAJOR;

let collections = 0;
let fullCollections = 0;
const countCollections = (entries: readonly PerformanceEntry[]) => {
  collections += entries.length;
  for (const entry of entries) if ('detail' in entry && isFull(entry.detail)) fullCollections++;
};
const observer = new PerformanceObserver((list) => countCollections(list.getEntries()));
observer.observe({ entryTypes: ['gc'] });

const commands: Readonly<Record<ProbeCommand, () => AsyncCounts | MemoryUse | undefined>> = {
  startCounting() {
    for (const name of Object.keys(counts)) counts[name as keyof typeof counts] = 0;
    places.clear();
    hook.enable();
    return undefined;
  },
  stopCounting() {
    hook.disable();
    return { ...counts, places: [...places] };
  },
  collectGarbage() {
    globalThis.gc?.();
    return undefined;
  },
  memoryUse() {
    countCollections(observer.takeRecords());
    const { heapUsed, external } = process.memoryUsage(); // `external` includes Buffers
    const oldSpaces = getHeapSpaceStatistics().filter(({ space_name }) =>
      /^(old|large_object)_space$/.test(space_name),
    );
    const oldBytes = oldSpaces.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
    return { bytes: heapUsed + external, oldBytes, collections, fullCollections };
  },
};

createServer((client) => {
  client.setEncoding('latin1').on('data', (lines: string) => {
    for (const line of lines.trim().split('\n'))
      client.write(`${JSON.stringify(commands[line as ProbeCommand]() ?? {})}\n`);
  });
})
  .listen(process.env.BENCH_PROBE)
  .unref();
