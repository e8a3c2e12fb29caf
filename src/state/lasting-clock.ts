/** A time for what must expire although the process was started anew meanwhile. */

/** The clocks of the machine. Milliseconds. */
export interface Clocks {
  /** Since 1970; somebody may set it. */
  readonly wall: () => number;
  /** On a clock that nobody sets, and that begins anew with the machine. */
  readonly steady: () => number;
}

export const clocksOfMachine: Clocks = { wall: Date.now, steady: () => performance.now() };

/**
 * Milliseconds since 1970 that never run backwards: from the wall clock at the start, then steadily.
 *
 * Whoever sets the clock while it runs changes nothing. If it was set back before the start, time goes on from the last
 * that is known: what has expired stays so, and nothing lives longer than it was given.
 *
 * @param seenMs the last time that an earlier run is known to have seen
 */
export function createLastingClock({ wall, steady }: Clocks, seenMs: number): () => number {
  const aheadMs = Math.max(wall(), seenMs) - steady();
  return () => aheadMs + steady();
}
