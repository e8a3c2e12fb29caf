/**
 * Chooses which answers of an environment are checked: the first of each operation in a second, and a sample of the others, at most 50. More
 * would not find a change of the bank earlier.
 */

import type { OperationName } from '../pis/operations.ts';

/** @param atMs when the request was received: milliseconds of `performance.now()` */
export type SampleAnswers = (operation: OperationName, atMs: number) => boolean;

const periodMs = 1_000;
/** Of one operation in a period. If `share` is 1, all are checked. */
const maxChecked = 50;

interface Period {
  readonly endsAtMs: number;
  checked: number;
}

/**
 * @param share  the part of the answers, from 0 to 1
 * @param random as `Math.random`
 */
export function createSampleAnswers(share: number, random: () => number = Math.random): SampleAnswers {
  const periods = new Map<OperationName, Period>();
  return (operation, atMs) => {
    const period = periods.get(operation);
    if (!period || atMs >= period.endsAtMs) {
      periods.set(operation, { endsAtMs: atMs + periodMs, checked: 1 });
      return true;
    }
    if (random() >= share || (share < 1 && period.checked >= maxChecked)) return false;
    period.checked += 1;
    return true;
  };
}
