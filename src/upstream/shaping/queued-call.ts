/** One call that waits: until it goes, its time is over, or its TPP leaves. */

import type { Queueable, QueueKey } from './fair-queue.ts';

/** A call that wants a turn. */
export interface LimitedCall extends QueueKey {
  /** When the whole call must be over: milliseconds on the shaper's clock. */
  readonly deadlineAtMs: number;
  /** Fires when the TPP leaves; a call that is on its way by then goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** A call in the line. */
export interface QueuedCall extends Queueable {
  /** When it has waited for as long as it may. */
  readonly untilMs: number;
  readonly admit: () => void;
  readonly refuse: (why: Error) => void;
  /** Whether its TPP has left. */
  readonly isDisconnected: () => boolean;
  /**
   * Has `late` called when its time is over, and `left` when its TPP leaves, or has left; a second time does nothing. Only
   * who really waits needs a timer and a listener.
   */
  readonly startTimer: (inMs: number) => void;
}

interface QueuedCallEvents {
  /** Its time is over. */
  readonly onTimeout: (waiter: QueuedCall) => void;
  /** Its TPP has left. */
  readonly onDisconnect: (waiter: QueuedCall) => void;
}

/**
 * A call about to stand in the line.
 *
 * @returns the waiter, and a promise that is kept when it goes and broken when it fails
 */
export function createQueuedCall(
  { lane, tenant, signal }: LimitedCall,
  untilMs: number,
  { onTimeout, onDisconnect }: QueuedCallEvents,
): { readonly waiter: QueuedCall; readonly gone: Promise<void> } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  let isDone = false;
  const disconnect = () => onDisconnect(queuedCall);
  const finish = () => {
    isDone = true;
    if (!timer) return;
    clearTimeout(timer);
    signal?.removeEventListener('abort', disconnect);
  };
  const queuedCall: QueuedCall = {
    lane,
    tenant,
    untilMs,
    isDisconnected: () => signal?.aborted ?? false,
    admit() {
      finish();
      resolve();
    },
    refuse(why) {
      finish();
      reject(why);
    },
    startTimer(inMs) {
      if (isDone || timer) return;
      if (signal?.aborted) return disconnect();
      signal?.addEventListener('abort', disconnect, { once: true });
      timer = setTimeout(() => onTimeout(queuedCall), Math.max(0, Math.ceil(inMs)));
    },
  };
  return { waiter: queuedCall, gone: promise };
}
