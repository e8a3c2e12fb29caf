/**
 * The pace of the reads with which listeners get a changed status: they count as polls, and the reads for one cache key need one
 * permit together. Without it, a change would cause a burst of reads, one for each of the credentials that wait.
 */

import { setTimeout } from 'node:timers/promises';
import type { DuePoll, PollBudget } from './poll-budget.ts';

export interface ReadPace {
  /**
   * Waits for the permit of a cache key.
   *
   * @param waitMs how long at most
   * @returns when it was granted: milliseconds of `performance.now()`, the same for all that have waited for it; `undefined` if it
   *   was not: the status is read later
   */
  take(key: string, read: Omit<DuePoll, 'urgency'>, waitMs: number): Promise<number | undefined>;
}

interface WaitingReads {
  /** How many still wait. */
  count: number;
  readonly grantedAtMs: Promise<number | undefined>;
}

export function createReadPace(budget: Pick<PollBudget, 'take'>): ReadPace {
  const waiting = new Map<string, WaitingReads>();

  function begin(key: string, read: Omit<DuePoll, 'urgency'>): WaitingReads {
    const granted = budget.take({ ...read, urgency: 'listener' }, () => reads.count > 0);
    const reads: WaitingReads = {
      count: 0,
      grantedAtMs: granted.then((isGranted) => {
        waiting.delete(key);
        return isGranted ? performance.now() : undefined;
      }),
    };
    waiting.set(key, reads);
    return reads;
  }

  return {
    async take(key, read, waitMs) {
      const reads = waiting.get(key) ?? begin(key, read);
      reads.count += 1;
      const end = new AbortController();
      try {
        const timeout = setTimeout(waitMs, undefined, { ref: false, signal: end.signal });
        return await Promise.race([reads.grantedAtMs, timeout.catch(() => undefined)]);
      } finally {
        reads.count -= 1;
        end.abort();
      }
    },
  };
}
