/**
 * The failure rate of recent calls in a sliding window, counted by opossum. This is the only file that imports opossum.
 *
 * opossum receives only successes and failures: it would count an error accepted by its `errorFilter` as a success. Its
 * own change to half-open is disabled, because it would use the next call as a probe, and this call could be a payment.
 */

import { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitSettings } from '../../config/schema.ts';

export interface FailureWindow {
  record(outcome: 'success' | 'failure'): void;
  counts(): WindowCounts;
  /** Whether the threshold was reached since the last reset. */
  isOpen(): boolean;
  /** Empties the window. */
  reset(): void;
  /** Stops counting, and shuts opossum down. */
  close(): void;
}

export interface WindowCounts {
  readonly failures: number;
  readonly calls: number;
  /** Whether the failure rate is reached, regardless of the number of calls. */
  readonly isFailing: boolean;
}

interface FailureWindowEvents {
  /** A failure was counted. Called before `onThreshold`. */
  readonly onFailure?: () => void;
  /** The failure rate is reached, with enough calls. */
  readonly onThreshold: (failures: number, calls: number) => void;
}

/** The window slides by one bucket at a time. */
const bucketCount = 10;

/** The longest timeout that Node supports: opossum is always closed or shut down earlier. */
const maxTimerMs = 2 ** 31 - 1;

export function createFailureWindow(
  { failureRate, minimumCalls, window }: CircuitSettings,
  now: () => number,
  { onFailure, onThreshold }: FailureWindowEvents,
): FailureWindow {
  const rotation = new EventEmitter();
  const bucketMs = window / bucketCount;
  // opossum opens if the rate exceeds its threshold; this window opens if the rate reaches it.
  const thresholdPercentage = failureRate * 100 - 1e-6;
  let bucketSinceMs = now();
  const breaker = new CircuitBreaker(
    async () => {
      throw new Error('the bank failed');
    },
    {
      timeout: false,
      resetTimeout: maxTimerMs,
      errorThresholdPercentage: thresholdPercentage,
      volumeThreshold: minimumCalls,
      rollingCountTimeout: window,
      rollingCountBuckets: bucketCount,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      rotateBucketController: rotation,
    },
  );
  if (onFailure) breaker.on('failure', onFailure);
  breaker.on('open', () => onThreshold(breaker.stats.failures, breaker.stats.fires));

  const rotate = (times: number) => {
    for (let count = 0; count < Math.min(times, bucketCount); count++) rotation.emit('rotate');
  };

  /** Calls and readers move the window; no timer is necessary. */
  function slide(): void {
    const elapsedBuckets = Math.floor((now() - bucketSinceMs) / bucketMs);
    rotate(elapsedBuckets);
    bucketSinceMs += elapsedBuckets * bucketMs;
  }

  return {
    record(outcome) {
      slide();
      if (outcome === 'failure') return void breaker.fire().catch(() => {});
      // The same counts as those of `fire` for a success, without its six promises.
      breaker.status.increment('fires');
      breaker.status.increment('successes');
    },
    counts() {
      slide();
      const { failures, fires: calls } = breaker.stats;
      return { failures, calls, isFailing: (failures / calls) * 100 > thresholdPercentage };
    },
    isOpen: () => breaker.opened,
    reset() {
      rotate(bucketCount);
      breaker.close();
    },
    close: () => breaker.shutdown(),
  };
}
