/** Assigns CPU cores: one to the server, another to the load generator, the bank and Redis. */

import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Core numbers; empty if processes cannot be pinned. */
export interface CoreAssignment {
  readonly server: readonly number[];
  readonly others: readonly number[];
}

export const anyCores: CoreAssignment = { server: [], others: [] };

/** @param processes of the server under test; each gets one core */
export function assignCores(processes: number): CoreAssignment {
  const count = availableParallelism();
  if (count <= processes || !canPin()) return anyCores;
  const all = Array.from({ length: count }, (_, core) => core);
  return { server: all.slice(0, processes), others: all.slice(processes) };
}

/** Moves this process and its future children to these cores. */
export function pinThisProcess(cores: readonly number[]): void {
  if (cores.length > 0)
    execFileSync('taskset', ['-cp', cores.join(','), String(process.pid)], { stdio: 'ignore' });
}

/** The command line that runs a program on these cores; unchanged if there are none. */
export const pinnedCommand = (cores: readonly number[], command: readonly string[]): readonly string[] =>
  cores.length === 0 ? command : ['taskset', '-c', cores.join(','), ...command];

function canPin(): boolean {
  try {
    execFileSync('taskset', ['-c', '0', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
