/** What beats as long as the gateway runs. */

/** Beats from `start` until `stop`. */
export interface PeriodicTask {
  start(): void;
  stop(): void;
}

/** Beats regularly, never twice at once. @param run never rejects; says in how many milliseconds the next one is due */
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

/** How often what others may have changed is looked at, in milliseconds: the longest that a switch goes unnoticed. */
export const heartbeatMs = 1_000;
