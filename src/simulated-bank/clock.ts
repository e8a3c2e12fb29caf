/** The bank's clock: real time plus what somebody has added, so that days can pass at once. */

/** Milliseconds since 1970, and a way to move them forward. */
export interface Clock {
  now(): number;
  /** Lets `ms` milliseconds pass. */
  advance(ms: number): void;
}

/** A clock that goes on from `now`, by default the machine's; a constant makes it stand still until it is advanced. */
export function createClock(now: () => number = Date.now): Clock {
  let addedMs = 0;
  return {
    now: () => now() + addedMs,
    advance: (ms) => {
      addedMs += ms;
    },
  };
}
