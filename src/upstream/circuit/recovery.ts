/** How an open circuit finds out that the bank is back: after a pause, which grows with each attempt that was in vain. */

import type { Verdict } from './verdict.ts';

/** The longest pause, in milliseconds. */
const longestPauseMs = 120_000;
/** How soon it is tried again if the bank could not be asked at all. Milliseconds. */
const againMs = 1_000;

export interface Recovery {
  /** The circuit has opened. @returns how long it will be left alone, in milliseconds */
  begin(): number;
  /** The bank has done what it was asked for: the next pause is the first again. */
  succeeded(): void;
  close(): void;
}

interface Parts {
  readonly openForMs: number;
  /** Never rejects. */
  readonly probe: () => Promise<Verdict>;
  /** Whether operators want nothing to be sent, probes included. */
  readonly isHeld: () => boolean;
  /** The pause is over, and the bank is being asked. */
  readonly asking: () => void;
  /** What it answered. */
  readonly answered: (verdict: 'well' | 'failing') => void;
}

export function createRecovery({ openForMs, probe, isHeld, asking, answered }: Parts): Recovery {
  let nextMs = openForMs;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  async function attempt(): Promise<void> {
    if (isHeld()) return attemptIn(againMs);
    asking();
    const verdict = await probe();
    if (closed) return;
    if (verdict === 'nothing') attemptIn(againMs);
    else answered(verdict);
  }

  function attemptIn(ms: number): void {
    if (closed) return;
    timer = setTimeout(attempt, ms);
    timer.unref();
  }

  return {
    begin() {
      const pauseMs = nextMs;
      nextMs = Math.min(pauseMs * 2, longestPauseMs);
      attemptIn(pauseMs);
      return pauseMs;
    },
    succeeded() {
      nextMs = openForMs;
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
