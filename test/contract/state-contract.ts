/** The parameters of the contract suite, so that one suite tests every implementation of the state. */

import type { TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { State } from '../../src/state/ports.ts';

/** An implementation: in memory, in SQLite, in one Redis, in a cluster. */
export interface StateUnderTest {
  /** Why it cannot be tested here, or false. */
  readonly skip: string | false;
  createStore(t: TestContext): Promise<TestStore>;
}

/** An empty store with its clock. */
export interface TestStore {
  /** An open state on this store: a new one at each call, if several clients can share the store. */
  client(): Promise<State>;
  /** An open state under another prefix: it uses equal keys without conflict. */
  otherClient(): Promise<State>;
  /** Milliseconds on the clock of the store. */
  now(): number;
  /** Lets time pass until the condition holds; fails with `what` if it does not within `ms` milliseconds. */
  until(ms: number, what: string, condition: () => boolean | Promise<boolean>): Promise<void>;
}

/** A clock that advances by a millisecond at each check of a condition. */
export function createManualClock(): Pick<TestStore, 'now' | 'until'> {
  let nowMs = 1_000_000;
  return {
    now: () => nowMs,
    async until(ms, what, condition) {
      const deadlineMs = nowMs + ms;
      while (!(await condition())) {
        if (nowMs > deadlineMs) throw new Error(`timed out after ${ms} ms: ${what}`);
        nowMs += 1;
        await setImmediate();
      }
    },
  };
}
