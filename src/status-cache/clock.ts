/** The time by which the age of an answer is told: no entry lives longer because somebody sets a clock. */

/** Milliseconds since 1970. */
export type Clock = () => number;

/**
 * A clock that goes on from where it was when the machine's is set back, and follows it when it is set forward: an
 * answer may then look older than it is, never younger.
 *
 * @param wall   the machine's time
 * @param steady milliseconds on a clock that nobody sets
 */
export function createClock(
  wall: () => number = Date.now,
  steady: () => number = () => performance.now(),
): Clock {
  let aheadMs = Number.NEGATIVE_INFINITY;
  return () => {
    aheadMs = Math.max(aheadMs, wall() - steady());
    return aheadMs + steady();
  };
}
