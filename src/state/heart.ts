/** Work that is done over and over while the gateway runs, such as looking at what instances share. */

export interface Heart {
  start(): void;
  stop(): void;
}

/** Beats regularly, never twice at once. @param firstMs when it begins, in milliseconds @param beat never rejects; says in how many milliseconds the next one is due */
export function createHeart(firstMs: number, beat: () => Promise<number>): Heart {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const beatIn = (ms: number) => {
    timer = setTimeout(async () => {
      const nextMs = await beat();
      if (!stopped) beatIn(nextMs);
    }, ms);
  };
  return {
    start: () => beatIn(firstMs),
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
