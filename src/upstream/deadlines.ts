/** One timer for the deadlines of many calls: to arm and clear one for each call costs more than everything else about it. */

import { createLinkedList, type LinkedList } from '../request/linked-list.ts';

/**
 * Calls `onDeadline` at that time, at most a few milliseconds late.
 *
 * @param atMs milliseconds of `performance.now()`
 * @returns clears the deadline
 */
export type SetDeadline = (atMs: number, onDeadline: () => void) => () => void;

class PendingDeadline {
  readonly atMs: number;
  readonly onDeadline: () => void;
  /** Returns whether it was still pending. */
  readonly clear: () => boolean;

  constructor(atMs: number, onDeadline: () => void, pending: LinkedList<PendingDeadline>) {
    this.atMs = atMs;
    this.onDeadline = onDeadline;
    this.clear = pending.append(this);
  }
}

/**
 * The timer is armed for the earliest deadline, and stays armed if that one is cleared: nearly all calls end long before theirs. It
 * does not keep the process running.
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
