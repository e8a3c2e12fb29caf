/** Sees whether more instances share the state than the shaping reckons with: in an outage they would exceed the rate. */

import type { Log } from './log.ts';

export interface InstanceWatch {
  /** To be called every second; counts every few times. Never fails. */
  look(): Promise<void>;
  /** How many there were at the last count, this one included; `undefined` before the first. */
  live(): number | undefined;
}

interface Parts {
  /** Counts the instances that are alive; may fail. */
  readonly count: () => Promise<number>;
  /** `shaping.expectedInstances`. */
  readonly expected: () => number;
  readonly log: Log;
}

/** They are counted every so many times. */
const turnsPerCount = 5;

export function createInstanceWatch({ count, expected, log }: Parts): InstanceWatch {
  let turns = 0;
  let live: number | undefined;
  let isTold = false;
  return {
    async look() {
      if (turns++ % turnsPerCount !== 0) return;
      live = await count().catch(() => live);
      const isMore = (live ?? 0) > expected();
      if (isMore && !isTold)
        log('warn', 'more instances are alive than shaping.expectedInstances says', {
          live,
          expected: expected(),
        });
      isTold = isMore;
    },
    live: () => live,
  };
}
