/** One timer for the deadlines of many calls: setting and clearing a timer for each call would cost more than the list does. */

import { createLinkedList, type LinkedList } from './linked-list.ts';

/**
 * Calls `onDeadline` at this time or a few milliseconds later, unless the process is busy.
 *
 * @param atMs milliseconds of `performance.now()`
 * @returns a function that clears the deadline
 */
export type SetDeadline = (atMs: number, onDeadline: () => void) => () => void;

class PendingDeadline {
  readonly atMs: number;
  readonly onDeadline: () => void;
  /** @returns whether it was still pending */
  readonly clear: () => boolean;

  constructor(atMs: number, onDeadline: () => void, pending: LinkedList<PendingDeadline>) {
    this.atMs = atMs;
    this.onDeadline = onDeadline;
    this.clear = pending.append(this);
  }
}

/**
 * The timer is set to the earliest deadline, and stays set if that one is cleared: nearly all calls end long before theirs. It does
 * not keep the process running.
 */
export function createDeadlines(): SetDeadline {
  const pending = createLinkedList<PendingDeadline>();
  let timer: NodeJS.Timeout | undefined;
  let firesAtMs = Number.POSITIVE_INFINITY;

  function fireAt(atMs: number): void {
    if (atMs >= firesAtMs) return;
    clearTimeout(timer);
    firesAtMs = atMs;
    timer = setTimeout(fire, Math.max(0, Math.ceil(atMs - performance.now()))).unref();
  }

  function fire(): void {
    firesAtMs = Number.POSITIVE_INFINITY;
    const nowMs = performance.now();
    for (const { atMs, onDeadline, clear } of pending.toArray()) {
      if (atMs > nowMs) fireAt(atMs);
      else if (clear()) onDeadline();
    }
  }

  return (atMs, onDeadline) => {
    fireAt(atMs);
    return new PendingDeadline(atMs, onDeadline, pending).clear;
  };
}
