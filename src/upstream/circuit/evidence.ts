/**
 * How the calls of one circuit went: counted by opossum, which only this file knows.
 *
 * opossum is told outcomes that say something about the bank and nothing else, for it takes a filtered error for a
 * success. It never half-opens by itself: the next call would be a payment.
 */

import { EventEmitter } from 'node:events';
import CircuitBreaker from 'opossum';
import type { CircuitSettings } from '../../config/schema.ts';
import type { Verdict } from './verdict.ts';

export interface Evidence {
  count(verdict: Exclude<Verdict, 'nothing'>): void;
  /** Begins anew, with an empty window. */
  forget(): void;
  /** Counts nothing any more. */
  close(): void;
}

/** The window is made of so many parts, and loses one at a time. */
const parts = 10;

/** The longest that Node's timers take: opossum is to be closed or gone before, and is never asked while it is open. */
const neverMs = 2 ** 31 - 1;

/** @param enough told when too many failed, with how many of how many */
export function createEvidence(
  { failureRate, minimumCalls, window }: CircuitSettings,
  now: () => number,
  enough: (failures: number, calls: number) => void,
): Evidence {
  const rotation = new EventEmitter();
  const partMs = window / parts;
  let partSinceMs = now();
  const breaker = new CircuitBreaker(
    async (verdict: Verdict) => {
      if (verdict === 'failing') throw new Error('the bank failed');
    },
    {
      timeout: false,
      resetTimeout: neverMs,
      errorThresholdPercentage: failureRate * 100 - 1e-6, // it opens above its threshold, we at ours
      volumeThreshold: minimumCalls,
      rollingCountTimeout: window,
      rollingCountBuckets: parts,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      rotateBucketController: rotation,
    },
  );
  breaker.on('open', () => enough(breaker.stats.failures, breaker.stats.fires));

  const rotate = (times: number) => {
    for (let turn = 0; turn < Math.min(times, parts); turn++) rotation.emit('rotate');
  };

  return {
    count(verdict) {
      // The calls themselves show that time has passed: no timer is needed for it.
      const passed = Math.floor((now() - partSinceMs) / partMs);
      rotate(passed);
      partSinceMs += passed * partMs;
      breaker.fire(verdict).catch(() => {});
    },
    forget() {
      rotate(parts);
      breaker.close();
    },
    close: () => breaker.shutdown(),
  };
}
