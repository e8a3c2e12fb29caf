/** The bank's clock: real time plus an offset, so that a test can advance days at once. */

/** Milliseconds since 1970, and a function to advance it. */
export interface BankClock {
  now(): number;
  /** Advances the clock by `ms` milliseconds. */
  advance(ms: number): void;
}

/** A clock based on `now`, by default the machine's; with a constant it stands still until it is advanced. */
export function createBankClock(now: () => number = Date.now): BankClock {
  let addedMs = 0;
  return {
    now: () => now() + addedMs,
    advance: (ms) => {
      addedMs += ms;
    },
  };
}
