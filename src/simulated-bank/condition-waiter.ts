/** Lets a test wait for a condition at the bank without polling. */
import { EventEmitter, once } from 'node:events';

/** Notifies waiting tests to check their conditions again. */
export interface ConditionWaiter {
  notify(): void;
  /** Resolves when the condition holds. @throws Error if it does not within `withinMs`, by default 20 s */
  waitUntil(condition: () => boolean, withinMs?: number): Promise<void>;
}

/** The condition waiter of one bank. */
export function createConditionWaiter(): ConditionWaiter {
  const events = new EventEmitter();
  events.setMaxListeners(0);
  return {
    notify: () => {
      events.emit('change');
    },
    waitUntil: async (condition, withinMs = 20_000) => {
      const signal = AbortSignal.timeout(withinMs);
      while (!condition()) {
        await once(events, 'change', { signal }).catch((cause) => {
          throw new Error(`condition not met at the bank within ${withinMs} ms: ${condition}`, { cause });
        });
      }
    },
  };
}
