/** One run of load on one server: what it achieved, what it cost, and who else was busy meanwhile. */

import type { Load } from './load.ts';
import { cores, cpuMsOf, cpuMsOfAllOurs } from './proc.ts';

export interface Sample {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server's processes, in user and kernel, by request. Microseconds. */
  readonly cpuMicros: number;
  readonly errors: number;
  /** How much of the machine others took, or the hypervisor: 0.01 is 1 % of all cores. */
  readonly foreign: number;
}

/** Others may have this part of the machine; beyond it, a run says little about the server. */
export const tolerated = 0.05;

/** @param pids of the server under test */
export async function sample(pids: readonly number[], load: () => Promise<Load>): Promise<Sample> {
  const before = now(pids);
  const { requests, seconds, p50Ms, p99Ms, errors } = await load();
  const after = now(pids);

  const used = (what: keyof typeof before) => after[what] - before[what];
  const foreignMs = Math.max(0, used('busyMs') - used('oursMs')) + used('stolenMs');
  return {
    requestsPerSecond: requests / seconds,
    p50Ms,
    p99Ms,
    cpuMicros: (used('serverMs') * 1_000) / requests,
    errors,
    foreign: foreignMs / (used('clockMs') * cores().size),
  };
}

function now(pids: readonly number[]) {
  const all = [...cores().values()];
  return {
    clockMs: performance.now(),
    serverMs: cpuMsOf(pids),
    oursMs: cpuMsOfAllOurs(),
    busyMs: all.reduce((sum, { busyMs }) => sum + busyMs, 0),
    stolenMs: all.reduce((sum, { stolenMs }) => sum + stolenMs, 0),
  };
}
