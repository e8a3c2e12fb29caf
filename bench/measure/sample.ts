/** Measures one run of load on one server: throughput, latency, CPU time, and the CPU share of other processes. */

import type { LoadResult } from './load.ts';
import { cores, cpuMsOf } from './proc.ts';

export interface Sample {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server's processes in user and kernel mode per request, in microseconds. */
  readonly cpuMicros: number;
  readonly errors: number;
  /** Share of the machine used by other processes or the hypervisor: 0.01 is 1 % of all cores. */
  readonly foreignShare: number;
}

/** Maximum share of other processes; beyond it, a run counts as disturbed. */
export const maxForeignShare = 0.05;

/** @param pids of the server under test */
export async function sample(pids: readonly number[], load: () => Promise<LoadResult>): Promise<Sample> {
  const before = readCounters(pids);
  const { requests, seconds, p50Ms, p99Ms, errors } = await load();
  const after = readCounters(pids);

  const used = (what: keyof typeof before) => after[what] - before[what];
  const foreignMs = Math.max(0, used('busyMs') - used('oursMs')) + used('stolenMs');
  return {
    requestsPerSecond: requests / seconds,
    p50Ms,
    p99Ms,
    cpuMicros: (used('serverMs') * 1_000) / requests,
    errors,
    foreignShare: foreignMs / (used('clockMs') * cores().size),
  };
}

function readCounters(pids: readonly number[]) {
  const all = [...cores().values()];
  return {
    clockMs: performance.now(),
    serverMs: cpuMsOf(pids),
    oursMs: cpuMsOf([process.pid]),
    busyMs: all.reduce((sum, { busyMs }) => sum + busyMs, 0),
    stolenMs: all.reduce((sum, { stolenMs }) => sum + stolenMs, 0),
  };
}
