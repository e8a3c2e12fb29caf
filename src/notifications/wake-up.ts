/** Wakes one that waits for a change. What happens while it is not waiting is kept until it waits again. */

import type { WaitOutcome } from '../request/request-events.ts';

export type WakeUpReason = Exclude<WaitOutcome, 'refused'>;

export interface WakeUp {
  /** Waits until `wake` or `end` is called; returns at once if one was called since the last time. */
  next(): Promise<WakeUpReason>;
  /** The status has probably changed. */
  wake(): void;
  /** Takes precedence over `wake`: from now on, `next` returns the reason of the first call. */
  end(reason: WakeUpReason): void;
}

export function createWakeUp(): WakeUp {
  let ended: WakeUpReason | undefined;
  let isWoken = false;
  let pending: ((reason: WakeUpReason) => void) | undefined;

  function take(): WakeUpReason | undefined {
    const reason = ended ?? (isWoken ? 'changed' : undefined);
    isWoken = false;
    return reason;
  }

  function deliver(): void {
    const resolve = pending;
    const reason = resolve && take();
    if (!reason) return;
    pending = undefined;
    resolve(reason);
  }

  return {
    next() {
      const reason = take();
      if (reason) return Promise.resolve(reason);
      return new Promise((resolve) => {
        pending = resolve;
      });
    },
    wake() {
      isWoken = true;
      deliver();
    },
    end(reason) {
      ended ??= reason;
      deliver();
    },
  };
}
