/** Chooses the answers of an environment that are checked: a sample, and one answer of each operation every second. */

import type { OperationName } from '../pis/operations.ts';

/** @param atMs when the request was received: milliseconds of `performance.now()` */
export type SampleAnswers = (operation: OperationName, atMs: number) => boolean;

/** With few requests, a sample alone would find a change of the bank late. Milliseconds. */
const maxGapMs = 1_000;

/**
 * @param share  the part of the answers, from 0 to 1
 * @param random as `Math.random`
 */
export function createSampleAnswers(share: number, random: () => number = Math.random): SampleAnswers {
  /** From when on the next answer is checked, whatever the sample. */
  const dueAtMs = new Map<OperationName, number>();
  return (operation, atMs) => {
    const isDue = atMs >= (dueAtMs.get(operation) ?? 0);
    if (!isDue && random() >= share) return false;
    dueAtMs.set(operation, atMs + maxGapMs);
    return true;
  };
}
