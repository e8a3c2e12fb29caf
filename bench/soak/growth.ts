/** Measures how the cost of a request depends on the number of stored payments and of open connections. */

import type { BenchRequest, LoadResult } from '../measure/load.ts';
import { memoryMiB } from '../measure/proc.ts';
import { initiatePayment } from '../measure/request-once.ts';
import { sample } from '../measure/sample.ts';
import { runWrk } from '../measure/wrk.ts';
import type { RunningServer } from '../testbed.ts';
import { initiation, paymentRequest, statusRequest } from '../traffic.ts';

/** A row: size, CPU µs per request, p50 and p99 in ms, errors, RSS in MiB. */
type Row = readonly string[];
type Measure = (
  server: RunningServer,
  sizes: readonly number[],
  cores: readonly number[],
) => Promise<readonly Row[]>;

const connections = 32;
const seconds = 4;
/** Without a warm-up, JIT compilation would increase the CPU time of the first sizes. */
const warmUpSeconds = 12;

/** Measures GET of a payment for each number of stored payments and X-Request-IDs in `sizes`; initiates them through the gateway. */
export const measureByPayments: Measure = async (server, sizes, cores) => {
  const { port } = server;
  const read = paymentRequest(await initiatePayment(port));
  await runWrk(read, { port, connections, seconds: warmUpSeconds }, cores);
  const rows: Row[] = [];
  let made = 0;
  let perSecond = 500;
  for (const size of sizes) {
    while (made < size) {
      const forSeconds = Math.max(1, Math.min(60, Math.round((size - made) / perSecond)));
      const load = await runWrk(initiation, { port, connections, seconds: forSeconds }, cores);
      made += load.requests - load.errors;
      perSecond = Math.max(1, load.requests / load.seconds);
    }
    rows.push(await measureRow(made, server, () => runWrk(read, { port, connections, seconds }, cores)));
  }
  return rows;
};

/** Measures GET of a cached status for each number of connections in `sizes`; each connection always has a request in progress. */
export const measureByConnections: Measure = async (server, sizes, cores) => {
  const { port } = server;
  const poll: BenchRequest = statusRequest(await initiatePayment(port));
  const load = (count: number) => runWrk(poll, { port, connections: count, seconds }, cores);
  await runWrk(poll, { port, connections, seconds: warmUpSeconds }, cores);
  const rows: Row[] = [];
  for (const size of sizes) rows.push(await measureRow(size, server, () => load(size)));
  return rows;
};

async function measureRow(
  size: number,
  { pids }: RunningServer,
  load: () => Promise<LoadResult>,
): Promise<Row> {
  const { cpuMicros, p50Ms, p99Ms, errors } = await sample(pids, load);
  const rssMiB = pids.reduce((sum, pid) => sum + memoryMiB(pid, 'VmRSS'), 0);
  const numbers = [
    cpuMicros.toFixed(1),
    p50Ms.toFixed(1),
    p99Ms.toFixed(1),
    String(errors),
    rssMiB.toFixed(0),
  ];
  return [size.toLocaleString('en'), ...numbers];
}
