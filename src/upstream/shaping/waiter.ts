/** One call that waits: until it goes, its time is over, or its TPP leaves. */

import type { Standing, Waiting } from './waiting-line.ts';

/** A call that wants a turn. */
export interface Call extends Waiting {
  /** When the whole call must be over: milliseconds on the shaper's clock. */
  readonly deadlineAtMs: number;
  /** Fires when the TPP leaves; a call that is on its way by then goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** A call in the line. */
export interface Waiter extends Standing {
  /** When it has waited for as long as it may. */
  readonly untilMs: number;
  readonly go: () => void;
  readonly fail: (why: Error) => void;
  /** Whether its TPP has left. */
  readonly hasLeft: () => boolean;
  /**
   * Has `late` called when its time is over, and `left` when its TPP leaves, or has left; a second time does nothing. Only
   * who really waits needs a timer and a listener.
   */
  readonly startClock: (inMs: number) => void;
}

interface Happens {
  /** Its time is over. */
  readonly late: (waiter: Waiter) => void;
  /** Its TPP has left. */
  readonly left: (waiter: Waiter) => void;
}

/**
 * A call about to stand in the line.
 *
 * @returns the waiter, and a promise that is kept when it goes and broken when it fails
 */
export function createWaiter(
  { lane, tenant, signal }: Call,
  untilMs: number,
  { late, left }: Happens,
): { readonly waiter: Waiter; readonly gone: Promise<void> } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let clock: NodeJS.Timeout | undefined;
  let isOver = false;
  const leave = () => left(waiter);
  const ended = () => {
    isOver = true;
    if (!clock) return;
    clearTimeout(clock);
    signal?.removeEventListener('abort', leave);
  };
  const waiter: Waiter = {
    lane,
    tenant,
    untilMs,
    hasLeft: () => signal?.aborted ?? false,
    go() {
      ended();
      resolve();
    },
    fail(why) {
      ended();
      reject(why);
    },
    startClock(inMs) {
      if (isOver || clock) return;
      if (signal?.aborted) return leave();
      signal?.addEventListener('abort', leave, { once: true });
      clock = setTimeout(() => late(waiter), Math.max(0, Math.ceil(inMs)));
    },
  };
  return { waiter, gone: promise };
}
