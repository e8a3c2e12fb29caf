/** What a request costs when there is more of something: payments that are remembered, connections that are open. */

import { askOnce } from '../measure/check.ts';
import type { Load, Request } from '../measure/load.ts';
import { memoryMiB } from '../measure/proc.ts';
import { sample } from '../measure/sample.ts';
import { runWrk } from '../measure/wrk.ts';
import type { OnStage } from '../testbed.ts';
import { initiation, paymentRead, statusRead } from '../traffic.ts';

/** A row: how much there is, CPU µs a request, p50 and p99 in ms, errors, RSS in MiB. */
type Row = readonly string[];
type Measure = (
  server: OnStage,
  sizes: readonly number[],
  cores: readonly number[],
) => Promise<readonly Row[]>;

const connections = 32;
const seconds = 4;
/** What comes first is compiled meanwhile, and would else be dearer than what comes last. */
const warmUpSeconds = 12;

/** GET of a payment with so many payments and their X-Request-IDs remembered; made through the gateway, as ever. */
export const asPaymentsGrow: Measure = async (server, sizes, cores) => {
  const { port } = server;
  const read = paymentRead(await newPayment(port));
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
    rows.push(await rowOf(made, server, () => runWrk(read, { port, connections, seconds }, cores)));
  }
  return rows;
};

/** GET of a status that is cached, over so many connections, each with a request under way. */
export const asConnectionsGrow: Measure = async (server, sizes, cores) => {
  const { port } = server;
  const poll: Request = statusRead(await newPayment(port));
  const load = (count: number) => runWrk(poll, { port, connections: count, seconds }, cores);
  await runWrk(poll, { port, connections, seconds: warmUpSeconds }, cores);
  const rows: Row[] = [];
  for (const size of sizes) rows.push(await rowOf(size, server, () => load(size)));
  return rows;
};

async function rowOf(size: number, { pids }: OnStage, load: () => Promise<Load>): Promise<Row> {
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

async function newPayment(port: number): Promise<string> {
  return String(JSON.parse(await askOnce(port, initiation, 201)).paymentId);
}
