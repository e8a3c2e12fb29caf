/** What beats as long as the gateway runs. */

/** Beats from `start` until `stop`. */
export interface Heart {
  start(): void;
  stop(): void;
}

/** Beats regularly, never twice at once. @param beat never rejects; says in how many milliseconds the next one is due */
export function createHeart(beat: () => Promise<number>): Heart {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const beatIn = (ms: number) => {
    timer = setTimeout(async () => {
      const nextMs = await beat();
      if (!stopped) beatIn(nextMs);
    }, ms);
  };
  return {
    start: () => beatIn(heartbeatMs),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** How often what others may have changed is looked at, in milliseconds: the longest that a switch goes unnoticed. */
export const heartbeatMs = 1_000;
