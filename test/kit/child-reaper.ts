/** Kills child processes that would outlive the test process. */

import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Starts a process that kills the child, and removes its folder if it has one, when the test process ends for any reason:
 * the system then closes the pipe that the reaper reads from.
 */
export function startChildReaper({ pid }: ChildProcess, folder = ''): ChildProcess | undefined {
  if (pid === undefined) return undefined;
  const script = 'cat; kill -9 "$0"; [ -z "$1" ] || rm -rf "$1"';
  const reaper = spawn('sh', ['-c', script, String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // otherwise an interrupt from the keyboard ends the reaper as well
  });
  reaper.unref();
  return reaper;
}
