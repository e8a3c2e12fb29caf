/** A last resort, for processes that must not outlive the tests. */

import { type ChildProcess, spawn } from 'node:child_process';

/**
 * A process that kills the child, and removes its folder if it has one, when this one is gone, however it ended:
 * the system closes the pipe that it reads from.
 */
export function startChildReaper({ pid }: ChildProcess, folder = ''): ChildProcess | undefined {
  if (pid === undefined) return undefined;
  const script = 'cat; kill -9 "$0"; [ -z "$1" ] || rm -rf "$1"';
  const guard = spawn('sh', ['-c', script, String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // else an interrupt from the keyboard ends it too soon
  });
  guard.unref();
  return guard;
}
