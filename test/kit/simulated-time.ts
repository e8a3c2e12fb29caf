/** Simulated time for code that waits: it passes only when a test advances it. */

import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';

export interface SimulatedTime {
  /** Milliseconds on a clock that stands still between two calls of `pass`. */
  readonly now: () => number;
  /** Lets time pass, step by step; whatever the timers of a step set off is done before the next one. */
  pass(ms: number, stepMs?: number): Promise<void>;
  /** Lets everything happen that waits for no timer. */
  settle(): Promise<void>;
}

/**
 * The timers and the date of this test are simulated from now on, until it ends.
 *
 * @param isIdle whether nothing is under way that needs real time, such as a command to Redis
 */
export function simulateTime(t: TestContext, isIdle: () => boolean = () => true): SimulatedTime {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  const settle = async () => {
    do await setImmediate();
    while (!isIdle());
  };
  return {
    now: Date.now,
    async pass(ms, stepMs = 1) {
      await settle();
      for (let passed = 0; passed < ms; passed += stepMs) {
        t.mock.timers.tick(stepMs);
        await settle();
      }
    },
    settle,
  };
}
