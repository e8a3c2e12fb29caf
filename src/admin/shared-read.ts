/** An expensive read that all who ask at the same time share, and that takes a limited part of the time of this instance. */

import { setTimeout } from 'node:timers/promises';

interface SharedReadOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  readonly wait?: (ms: number) => Promise<unknown>;
}

/** After a read, the next one waits this many times as long as it took: all of them together take a fifth of the time. */
const pauseFactor = 4;
/** The console waits 15 s for a response. Milliseconds. */
const maxPauseMs = 5_000;

/**
 * Nobody gets what was read before they asked: who asks during a read gets the result of the next one.
 *
 * @returns a function that reads, alone or together with others
 */
export function shareRead<Value>(
  read: () => Promise<Value>,
  { now = () => performance.now(), wait = waitUnreferenced }: SharedReadOptions = {},
): () => Promise<Value> {
  /** A read that has not begun. */
  let next: Promise<Value> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let earliestMs = Number.NEGATIVE_INFINITY;

  async function readNext(): Promise<Value> {
    await last.catch(() => {}); // its callers get the error
    if (earliestMs > now()) await wait(earliestMs - now());
    next = undefined;
    const startMs = now();
    const reading = read();
    last = reading;
    try {
      return await reading;
    } finally {
      earliestMs = now() + Math.min(maxPauseMs, pauseFactor * (now() - startMs));
    }
  }

  return () => {
    next ??= readNext();
    return next;
  };
}

/** The process may end in the meantime. */
const waitUnreferenced = (ms: number) => setTimeout(ms, undefined, { ref: false });
