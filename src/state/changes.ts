/** Waiting for a value to change, in this instance or another: woken by announcements, and looking by itself besides. */

import type { Announcements } from './ports.ts';

export interface Changes {
  /** Comes back when a change of this value is told of, or after a while without: then look. */
  to(key: string): Promise<void>;
  /** Tells all instances that this value has changed; a message that is lost only costs them a while. */
  tell(key: string): void;
}

/** How long those who wait go without looking, should an announcement be lost. Milliseconds. */
const lookMs = 200;

export function createChanges(announcements: Announcements, channel: string): Changes {
  const waiting = new Map<string, Set<() => void>>();
  announcements.subscribe(channel, (key) => {
    for (const wake of waiting.get(key) ?? []) wake();
  });

  return {
    to: (key) =>
      new Promise((resolve) => {
        const wakers = waiting.get(key) ?? new Set();
        waiting.set(key, wakers);
        const wake = () => {
          clearTimeout(timer);
          wakers.delete(wake);
          if (wakers.size === 0) waiting.delete(key);
          resolve();
        };
        const timer = setTimeout(wake, lookMs);
        wakers.add(wake);
      }),
    tell: (key) => void announcements.publish(channel, key).catch(() => {}),
  };
}
