/** Waits until a value changes in this or another instance: woken by a pub/sub message, and by polling in case one is lost. */

import type { PubSub } from './ports.ts';

export interface ChangeWaiter {
  /** Resolves at the next notification for this key, or after 200 ms without one; the caller then reads the value again. */
  nextChange(key: string): Promise<void>;
  /** Notifies all instances that the value has changed. Never fails: a lost message only delays the waiting callers. */
  notify(key: string): void;
}

/** Longest wait for a notification. Milliseconds. */
const maxWaitMs = 200;

export function createChangeWaiter(pubsub: PubSub, channel: string): ChangeWaiter {
  const waiting = new Map<string, Set<() => void>>();
  pubsub.subscribe(channel, (key) => {
    for (const wake of waiting.get(key) ?? []) wake();
  });

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
    notify(key) {
      pubsub.publish(channel, key).catch(() => {});
    },
  };
}
