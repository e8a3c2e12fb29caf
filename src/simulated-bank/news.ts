/** Lets a test wait for something to have happened at the bank without polling. */
import { EventEmitter, once } from 'node:events';

/** Tells whoever waits to look again. */
export interface News {
  tell(): void;
  /** Resolves when the condition holds. @throws Error if it does not within `withinMs`, by default 5 s */
  until(condition: () => boolean, withinMs?: number): Promise<void>;
}

/** News of one bank. */
export function createNews(): News {
  const events = new EventEmitter();
  events.setMaxListeners(0);
  return {
    tell: () => {
      events.emit('news');
    },
    until: async (condition, withinMs = 5_000) => {
      const signal = AbortSignal.timeout(withinMs);
      while (!condition()) {
        await once(events, 'news', { signal }).catch((cause) => {
          throw new Error(`not so at the bank within ${withinMs} ms: ${condition}`, { cause });
        });
      }
    },
  };
}
