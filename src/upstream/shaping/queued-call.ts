/** A call that waits in the queue until it is admitted, its time is over, or its TPP disconnects. */

import type { DisconnectSignal } from '../../request/messages.ts';
import type { Queueable, QueueKey } from './fair-queue.ts';

/** A call that needs a permit. */
export interface LimitedCall extends QueueKey {
  /** When the whole call must be complete: milliseconds on the clock of the rate limiter. */
  readonly deadlineAtMs: number;
  /** Aborted when the TPP disconnects. Has no effect once the call is admitted. */
  readonly signal?: DisconnectSignal | undefined;
}

export interface QueuedCall extends Queueable {
  /** When its wait must end. */
  readonly untilMs: number;
  readonly admit: () => void;
  readonly refuse: (why: Error) => void;
  readonly isDisconnected: () => boolean;
  /**
   * Starts the timer and listens for the disconnect of the TPP. A second call has no effect. Separate from the creation,
   * because a call that is admitted immediately needs neither.
   */
  readonly startTimer: (inMs: number) => void;
}

interface QueuedCallEvents {
  readonly onTimeout: (call: QueuedCall) => void;
  readonly onDisconnect: (call: QueuedCall) => void;
}

/** @returns the call, and a promise that its admission fulfils and its refusal rejects */
export function createQueuedCall(
  { lane, tenant, signal }: LimitedCall,
  untilMs: number,
  { onTimeout, onDisconnect }: QueuedCallEvents,
): { readonly queuedCall: QueuedCall; readonly admitted: Promise<void> } {
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
  return { queuedCall, admitted: promise };
}
