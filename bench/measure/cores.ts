/** Which core does what: the server one, the load generator and all that stands behind the server another. */

import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Cores by number; empty where nothing can be pinned. */
export interface Places {
  readonly server: readonly number[];
  readonly others: readonly number[];
}

/** @param processes of the server under test, each of which wants a core */
export function chooseCores(processes: number): Places {
  const count = availableParallelism();
  if (count <= processes || !canPin()) return { server: [], others: [] };
  const all = Array.from({ length: count }, (_, core) => core);
  return { server: all.slice(0, processes), others: all.slice(processes) };
}

/** Moves this process, and whatever it starts from now on, to these cores. */
export function moveTo(cores: readonly number[]): void {
  if (cores.length > 0)
    execFileSync('taskset', ['-cp', cores.join(','), String(process.pid)], { stdio: 'ignore' });
}

/** The command line that runs a program on these cores; as it is where there are none. */
export const pinned = (cores: readonly number[], command: readonly string[]): readonly string[] =>
  cores.length === 0 ? command : ['taskset', '-c', cores.join(','), ...command];

function canPin(): boolean {
  try {
    execFileSync('taskset', ['-c', '0', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
