/** How long others took to answer, apart from the time that this process was busy itself. */

import { performance } from 'node:perf_hooks';

/** Begins to count. @returns milliseconds since then in which the event loop had nothing to do */
export function idleTime(): () => number {
  const begun = performance.eventLoopUtilization();
  return () => performance.eventLoopUtilization(begun).idle;
}
