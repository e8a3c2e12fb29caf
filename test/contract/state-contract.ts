/** What the contract needs to know of a kind of state, so that one suite can put all of them to the test. */

import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { State } from '../../src/state/ports.ts';

/** One kind of state: in memory, in one Redis, in a cluster. */
export interface StateUnderTest {
  /** Why it cannot be tested here, or false. */
  readonly skip: string | false;
  /** An empty store. */
  store(t: TestContext): Promise<TestStore>;
}

/** One place where state is kept, with a clock of its own. */
export interface TestStore {
  /** An open state on this store: another one at each call, if several can share it. */
  client(): Promise<State>;
  /** An open state whose keys are spelt the same and are others. */
  otherClient(): Promise<State>;
  /** Milliseconds on the store's clock. */
  now(): number;
  /** Lets time pass until the condition holds; fails with `what` if it does not within `ms` milliseconds. */
  until(ms: number, what: string, condition: () => boolean | Promise<boolean>): Promise<void>;
}

/** A clock that the test sets: each look at a condition takes a millisecond. */
export function createManualClock(): Pick<TestStore, 'now' | 'until'> {
  let nowMs = 1_000_000;
  return {
    now: () => nowMs,
    async until(ms, what, condition) {
      const deadline = nowMs + ms;
      while (!(await condition())) {
        if (nowMs > deadline) throw new Error(`${ms} ms passed in vain until ${what}`);
        nowMs += 1;
        await setImmediate();
      }
    },
  };
}
