/**
 * Chooses the answers of an environment that are checked: of each operation one in every second, and a sample of the others. The sample
 * is bounded: a change of the bank is found with fifty answers in a second as well as with a thousand.
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
