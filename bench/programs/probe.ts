/**
 * Preloaded into a server (`node --import`): counts promises, timers and allocated bytes for a client of the Unix socket
 * BENCH_PROBE, which sends one command per line and receives one line of JSON for each (budgets/probe.ts).
 */

import { createHook } from 'node:async_hooks';
import { createServer } from 'node:net';
import { PerformanceObserver } from 'node:perf_hooks';
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

let collections = 0;
const observer = new PerformanceObserver((list) => {
  collections += list.getEntries().length;
});
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
    collections += observer.takeRecords().length;
    const { heapUsed, external } = process.memoryUsage(); // `external` includes Buffers
    return { bytes: heapUsed + external, collections };
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
