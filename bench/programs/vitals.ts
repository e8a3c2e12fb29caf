/** Preloaded into a server (`node --import`): appends the memory use and event-loop delay of the server to the file BENCH_VITALS once per second. */

import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const file = process.env.BENCH_VITALS;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

setInterval(() => {
  const { rss, heapUsed } = process.memoryUsage();
  const delayP99Ms = delay.percentile(99) / 1e6;
  delay.reset();
  const vitals = { atMs: performance.now(), rssMiB: rss / 2 ** 20, heapMiB: heapUsed / 2 ** 20, delayP99Ms };
  if (file) appendFileSync(file, `${JSON.stringify(vitals)}\n`);
}, 1_000).unref();
