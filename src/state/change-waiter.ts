/** Waits until a value changes in this or another instance: woken by a message, and by polling in case there is none. */

import type { PubSub } from './ports.ts';

export interface Waiters {
  /** Resolves when the key is woken, or after `maxWaitMs`; the caller then reads the value again. */
  nextChange(key: string): Promise<void>;
  wake(key: string): void;
  /** Whether nothing waits. */
  isEmpty(): boolean;
}

export interface ChangeWaiter extends Pick<Waiters, 'nextChange'> {
  /** Notifies all instances that the value has changed. Never fails: a lost message only delays the waiting callers. */
  notify(key: string): void;
}

/** Those of this instance. @param maxWaitMs the interval of polling, in milliseconds */
export function createWaiters(maxWaitMs = 200): Waiters {
  const waiting = new Map<string, Set<() => void>>();
  return {
    nextChange: (key) =>
      new Promise((resolve) => {
        const callbacks = waiting.get(key) ?? new Set();
        waiting.set(key, callbacks);
        const wake = () => {
          clearTimeout(timer);
          callbacks.delete(wake);
          if (callbacks.size === 0) waiting.delete(key);
          resolve();
        };
        const timer = setTimeout(wake, maxWaitMs);
        callbacks.add(wake);
      }),
    wake(key) {
      for (const wake of waiting.get(key) ?? []) wake();
    },
    isEmpty: () => waiting.size === 0,
  };
}

export function createChangeWaiter(pubsub: PubSub, channel: string): ChangeWaiter {
  const { nextChange, wake } = createWaiters();
  pubsub.subscribe(channel, wake);
  return {
    nextChange,
    notify(key) {
      pubsub.publish(channel, key).catch(() => {});
    },
  };
}
