/** Sees whether more instances share the state than the shaping reckons with: in an outage they would exceed the rate. */

import type { Log } from './log.ts';

export interface InstanceCount {
  /** To be called every second; counts every few times. Never fails. */
  refresh(): Promise<void>;
  /** How many there were at the last count, this one included; `undefined` before the first. */
  live(): number | undefined;
}

interface InstanceCountDependencies {
  /** Counts the instances that are alive; may fail. */
  readonly count: () => Promise<number>;
  /** `shaping.expectedInstances`. */
  readonly expected: () => number;
  readonly log: Log;
}

/** They are counted every so many times. */
const refreshesPerCount = 5;

export function createInstanceCount({ count, expected, log }: InstanceCountDependencies): InstanceCount {
  let refreshes = 0;
  let live: number | undefined;
  let isWarned = false;
  return {
    async refresh() {
      if (refreshes++ % refreshesPerCount !== 0) return;
      live = await count().catch(() => live);
      const isMore = (live ?? 0) > expected();
      if (isMore && !isWarned)
        log('warn', 'more instances are alive than shaping.expectedInstances says', {
          live,
          expected: expected(),
        });
      isWarned = isMore;
    },
    live: () => live,
  };
}
