/**
 * The failure rate of recent calls in a sliding window, counted by opossum. This is the only file that imports opossum.
 *
 * opossum receives only successes and failures: it would count an error accepted by its `errorFilter` as a success. Its
 * own change to half-open is disabled, because it would use the next call as a probe, and this call could be a payment.
 */

import { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitSettings } from '../../config/schema.ts';
import type { CallOutcome } from './classify-outcome.ts';

export interface FailureWindow {
  record(outcome: Exclude<CallOutcome, 'neutral'>): void;
  /** Empties the window. */
  reset(): void;
  /** Stops counting, and shuts opossum down. */
  close(): void;
}

/** The window slides by one bucket at a time. */
const bucketCount = 10;

/** The longest timeout that Node supports. The circuit closes opossum or shuts it down earlier, and never calls it while it is open. */
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
      // opossum opens if the rate exceeds its threshold; this circuit opens if the rate reaches it.
      errorThresholdPercentage: failureRate * 100 - 1e-6,
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
      // Each call moves the window; no timer is necessary.
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
