/** Waiting for a value to change, in this instance or another: woken by pubsub, and looking by itself besides. */

import type { PubSub } from './ports.ts';

export interface ChangeWaiter {
  /** Comes back when a change of this value is told of, or after a while without: then look. */
  nextChange(key: string): Promise<void>;
  /** Tells all instances that this value has changed; a message that is lost only costs them a while. */
  notify(key: string): void;
}

/** How long those who wait go without looking, should an announcement be lost. Milliseconds. */
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
    notify: (key) => void pubsub.publish(channel, key).catch(() => {}),
  };
}
