/** When an undelivered message is sent again. */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** The delays after the first failed attempts; the last one applies to all further attempts. Milliseconds. */
const delays = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  6 * hour,
] as const satisfies readonly number[];

/** The part of a delay that is random, so that messages that failed together are not all repeated at the same time. */
const jitter = 0.2;

/**
 * The delay before the next attempt. Milliseconds.
 *
 * @param failedAttempts at least 1
 * @param random         from 0 to 1, such as `Math.random`
 */
export function retryDelayMs(failedAttempts: number, random: () => number = Math.random): number {
  const delayMs = delays[Math.min(failedAttempts, delays.length) - 1] ?? delays[0];
  return Math.round(delayMs * (1 + jitter * (random() - 0.5)));
}
