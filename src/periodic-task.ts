/** A task that runs at intervals until it is stopped. */

export interface PeriodicTask {
  /** The first run is due after one heartbeat interval. */
  start(): void;
  stop(): void;
}

/** Default interval in milliseconds; the longest time for which an instance misses a switch of the environment. */
export const heartbeatMs = 1_000;

/** Runs never overlap. @param run must not reject; resolves to the milliseconds until the next run */
export function createPeriodicTask(run: () => Promise<number>): PeriodicTask {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const schedule = (ms: number) => {
    timer = setTimeout(async () => {
      const nextMs = await run();
      if (!stopped) schedule(nextMs);
    }, ms);
  };
  return {
    start: () => schedule(heartbeatMs),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
