/**
 * How the calls of one circuit went: counted by opossum, which only this file knows.
 *
 * opossum is told outcomes that say something about the bank and nothing else, for it takes a filtered error for a
 * success. It never half-opens by itself: the next call would be a payment.
 */

import { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitSettings } from '../../config/schema.ts';
import type { CallOutcome } from './classify-outcome.ts';

export interface FailureWindow {
  record(verdict: Exclude<CallOutcome, 'nothing'>): void;
  /** Begins anew, with an empty window. */
  reset(): void;
  /** Counts nothing any more. */
  close(): void;
}

/** The window is made of so many parts, and loses one at a time. */
const bucketCount = 10;

/** The longest that Node's timers take: opossum is to be closed or gone before, and is never asked while it is open. */
const maxTimerMs = 2 ** 31 - 1;

/** @param onThreshold told when too many failed, with how many of how many */
export function createFailureWindow(
  { failureRate, minimumCalls, window }: CircuitSettings,
  now: () => number,
  onThreshold: (failures: number, calls: number) => void,
): FailureWindow {
  const rotation = new EventEmitter();
  const bucketMs = window / bucketCount;
  let bucketSinceMs = now();
  const breaker = new CircuitBreaker(
    async (verdict: CallOutcome) => {
      if (verdict === 'failing') throw new Error('the bank failed');
    },
    {
      timeout: false,
      resetTimeout: maxTimerMs,
      errorThresholdPercentage: failureRate * 100 - 1e-6, // it opens above its threshold, we at ours
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
    for (let turn = 0; turn < Math.min(times, bucketCount); turn++) rotation.emit('rotate');
  };

  return {
    record(verdict) {
      // The calls themselves show that time has passed: no timer is needed for it.
      const passed = Math.floor((now() - bucketSinceMs) / bucketMs);
      rotate(passed);
      bucketSinceMs += passed * bucketMs;
      breaker.fire(verdict).catch(() => {});
    },
    reset() {
      rotate(bucketCount);
      breaker.close();
    },
    close: () => breaker.shutdown(),
  };
}
