/**
 * Preloaded into a server (`node --import`): counts promises, timers and allocated bytes for a client of the Unix socket
 * BENCH_PROBE, which sends one command per line and receives one line of JSON for each (budgets/probe.ts).
 */

import { createHook } from 'node:async_hooks';
import { createServer } from 'node:net';
import { PerformanceObserver } from 'node:perf_hooks';
import type { AsyncCounts, MemoryUse, ProbeCommand } from '../budgets/probe.ts';

const ownCode = /\/src\//;
/** Frames of a stack that are not the code that created a promise, such as `Promise.then` and `new Promise`. */
const notTheCaller = /node:internal\/(async|promise)|new Promise|Promise\.|\(<anonymous>\)$/;

let promises = 0;
let timers = 0;
const places = new Map<string, number>();

const hook = createHook({
  init(_id, type) {
    if (type !== 'PROMISE' && type !== 'Timeout') return;
    const frames = stackFrames();
    const place =
      type === 'PROMISE'
        ? frames.find((frame) => !notTheCaller.test(frame))
        : frames.find((frame) => ownCode.test(frame)); // also a timer that a library arms for us
    if (place === undefined || !ownCode.test(place)) return;
    if (type === 'PROMISE') promises++;
    else timers++;
    const name = `${type === 'PROMISE' ? 'promise' : 'timer'}: ${place.trim().replace(/(file:)?\/.*\/src\//, '')}`;
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
    promises = 0;
    timers = 0;
    places.clear();
    hook.enable();
    return undefined;
  },
  stopCounting() {
    hook.disable();
    return { promises, timers, places: [...places] };
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
