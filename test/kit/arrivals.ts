/** When calls arrived at a bank, and what of a rate can be read off that. Times in milliseconds. */

import type { LoggedRequest } from '../../src/simulated-bank/request-log.ts';

/** As in the configuration. */
interface Bucket {
  readonly perSecond: number;
  readonly burst: number;
}

export const arrivalsOf = (requests: readonly LoggedRequest[]): readonly number[] =>
  requests.map(({ arrivedAtMs }) => arrivedAtMs).toSorted((one, other) => one - other);

/**
 * How much closer calls came than a token bucket allows, which is how long the network or this process held some of them
 * up: in any window of t there may be burst + rate * t calls.
 *
 *     allowed:  last - first >= (count - burst) / rate      for every first and last of `count` calls
 *
 * @returns what is missing at the worst of all windows; 0 or below if nothing is
 */
export function excessMs(arrivals: readonly number[], { perSecond, burst }: Bucket): number {
  const intervalMs = 1_000 / perSecond;
  let worst = Number.NEGATIVE_INFINITY;
  // Evened out by its number, the worst first call of a window is the latest one, and missing is
  // (count - burst) * interval - (last - first) with count = last's number - first's number + 1.
  let latest = Number.NEGATIVE_INFINITY;
  for (const [number, atMs] of arrivals.entries()) {
    const evenedOut = atMs - number * intervalMs;
    latest = Math.max(latest, evenedOut);
    worst = Math.max(worst, latest - evenedOut + (1 - burst) * intervalMs);
  }
  return worst;
}

/** The lowest and the highest rate, in calls per second, over any window of that length that lies within the arrivals. */
export function ratesOver(
  windowMs: number,
  arrivals: readonly number[],
): readonly [low: number, high: number] {
  const last = arrivals.at(-1) ?? 0;
  const rates = arrivals
    .filter((beginMs) => beginMs + windowMs <= last)
    .map((beginMs) => arrivals.filter((atMs) => atMs > beginMs && atMs <= beginMs + windowMs).length);
  return [Math.min(...rates) / (windowMs / 1_000), Math.max(...rates) / (windowMs / 1_000)];
}
