/** What went through this instance, second by second, for whoever watches it live. */

import type { CacheVerdict } from '../request/request-events.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';

/** One second. */
export interface SecondStats {
  /** Seconds since 1970. */
  readonly at: number;
  readonly requests: number;
  /** How many got an answer of 4xx or 5xx that the gateway made. */
  readonly refused: number;
  /** How many got an answer of 5xx that the bank made. */
  readonly failed: number;
  /** How long they took, within 5 %; `null` if there were none. Milliseconds. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  /** How status reads were answered. */
  readonly cache: Readonly<Record<CacheResult, number>>;
}

type CacheResult = 'hit' | 'stale' | 'shared' | 'miss' | 'bypass';

export interface LiveStats extends RequestObserver {
  /** The last 300 whole seconds at most, the oldest first, none left out. */
  recent(): readonly SecondStats[];
  /** The second that is running, so far. */
  current(): SecondStats;
}

const maxSeconds = 300;

/** Nothing noted yet. @param now milliseconds since 1970 */
export function createLiveStats(now: () => number = Date.now): LiveStats {
  const finished: SecondStats[] = [];
  let counter = createSecondCounter(secondOf(now()));

  /** Ends the seconds that are over. A clock that is set back only makes the running one longer. */
  function finishSeconds(): void {
    const at = secondOf(now());
    if (at <= counter.at) return;
    finished.push(counter.stats());
    const firstEmpty = Math.max(counter.at + 1, at - maxSeconds);
    for (let second = firstEmpty; second < at; second += 1)
      finished.push(createSecondCounter(second).stats());
    finished.splice(0, finished.length - maxSeconds);
    counter = createSecondCounter(at);
  }

  function decided(decision: RequestRecord): void {
    finishSeconds();
    counter.add(decision);
  }

  return {
    onRequestEnd: decided,
    recent() {
      finishSeconds();
      return [...finished];
    },
    current() {
      finishSeconds();
      return counter.stats();
    },
  };
}

const secondOf = (ms: number) => Math.floor(ms / 1_000);

const cacheResultOf: Readonly<Record<CacheVerdict, CacheResult>> = {
  hit: 'hit',
  stale: 'stale',
  shared: 'shared',
  miss: 'miss',
  request: 'bypass',
  bypass: 'bypass',
};

function createSecondCounter(at: number) {
  const counts = { requests: 0, refused: 0, failed: 0 };
  const cache = { hit: 0, stale: 0, shared: 0, miss: 0, bypass: 0 };
  const durations = new Map<number, number>();

  /** The duration that this part of all requests did not exceed. */
  function quantile(part: number): number | null {
    const steps = [...durations].sort(([one], [other]) => one - other);
    let rest = Math.ceil(part * steps.reduce((sum, [, count]) => sum + count, 0));
    for (const [step, count] of steps) {
      rest -= count;
      if (rest <= 0) return bucketMiddleMs(step);
    }
    return null;
  }

  return {
    at,
    add({ error, status, servedFrom, durationMs, steps }: RequestRecord): void {
      counts.requests += 1;
      if (error) counts.refused += 1;
      else if (status >= 500 && servedFrom === 'bank') counts.failed += 1;
      if (durationMs !== undefined) {
        const step = bucketOf(durationMs);
        durations.set(step, (durations.get(step) ?? 0) + 1);
      }
      for (const { event } of steps) if (event.what === 'cache') cache[cacheResultOf[event.verdict]] += 1;
    },
    stats: (): SecondStats => {
      return { at, ...counts, p50Ms: quantile(0.5), p99Ms: quantile(0.99), cache: { ...cache } };
    },
  };
}

/**
 * Durations are counted in steps, each 10 % wider than the one before, from 0.01 ms on: a minute is step 164, so that a
 * second of any load takes no more than that. The middle of a step is within 5 % of everything in it.
 */
const bucketOf = (ms: number) => Math.max(0, Math.floor(Math.log(ms / 0.01) / Math.log(1.1)));
const bucketMiddleMs = (step: number) => Math.round(0.01 * 1.1 ** (step + 0.5) * 100) / 100;
