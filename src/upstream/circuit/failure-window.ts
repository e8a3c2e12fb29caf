/**
 * The failure rate of recent calls in a sliding window, counted by opossum. The only file that imports opossum.
 *
 * opossum receives successes and failures only: it would count a filtered error as a success. It never half-opens by
 * itself: the next call could be a payment.
 */

import { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitSettings } from '../../config/schema.ts';
import type { CallOutcome } from './classify-outcome.ts';

export interface FailureWindow {
  record(outcome: Exclude<CallOutcome, 'neutral'>): void;
  /** Empties the window. */
  reset(): void;
  /** Stops counting. */
  close(): void;
}

/** The window slides by one bucket at a time. */
const bucketCount = 10;

/** The longest timeout that Node supports: opossum is closed or shut down earlier, and is never called while open. */
const maxTimerMs = 2 ** 31 - 1;

/** @param onThreshold called when the failure rate is reached, with the number of failures and of calls */
export function createFailureWindow(
  { failureRate, minimumCalls, window }: CircuitSettings,
  now: () => number,
  onThreshold: (failures: number, calls: number) => void,
): FailureWindow {
  const rotation = new EventEmitter();
  const bucketMs = window / bucketCount;
  let bucketSinceMs = now();
  const breaker = new CircuitBreaker(
    async (outcome: CallOutcome) => {
      if (outcome === 'failure') throw new Error('the bank failed');
    },
    {
      timeout: false,
      resetTimeout: maxTimerMs,
      errorThresholdPercentage: failureRate * 100 - 1e-6, // opossum opens above its threshold, this circuit at it
      volumeThreshold: minimumCalls,
      rollingCountTimeout: window,
      rollingCountBuckets: bucketCount,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      rotateBucketController: rotation,
    },
  );
  breaker.on('open', () => onThreshold(breaker.stats.failures, breaker.stats.fires));

  const rotate = (times: number) => {
    for (let count = 0; count < Math.min(times, bucketCount); count++) rotation.emit('rotate');
  };

  return {
    record(outcome) {
      // Slides the window with each call instead of a timer.
      const elapsedBuckets = Math.floor((now() - bucketSinceMs) / bucketMs);
      rotate(elapsedBuckets);
      bucketSinceMs += elapsedBuckets * bucketMs;
      breaker.fire(outcome).catch(() => {});
    },
    reset() {
      rotate(bucketCount);
      breaker.close();
    },
    close: () => breaker.shutdown(),
  };
}
