/** Token buckets that do not delay occasional calls while the shared state responds slowly. */

import { performance } from 'node:perf_hooks';
import { createMemoryTokenBuckets } from './memory.ts';
import type { BucketRate, TokenBuckets } from './ports.ts';

/** The state counts as slow if it takes longer than this. Milliseconds. */
const slowAfterMs = 15;
/** Longer than any possible wait: the permit is already used, so its reservation must not be refused. Milliseconds. */
const unlimitedWaitMs = 3_600_000;

/**
 * While the state is slow, an instance takes a permit immediately and reserves it in the shared bucket afterwards, if it
 * has taken none for as long as one permit lasts at its share of the rate. All other calls wait for the shared bucket.
 * So an occasional call is not delayed, every permit is counted, and each instance is ahead by at most one permit.
 *
 * @param share of the rate at which permits are taken before the shared bucket responds, 0 to 1
 * @param clocks `now` in milliseconds on a monotonic clock; `stopwatch` starts to measure a response time and returns its
 *   reading in milliseconds
 * @throws GatewayError STATE_UNAVAILABLE as the shared bucket does
 */
export function createOptimisticLimiter(
  shared: TokenBuckets,
  share: () => number,
  clocks: { readonly now?: () => number; readonly stopwatch?: () => () => number } = {},
): TokenBuckets {
  const { now = () => performance.now(), stopwatch = startIdleStopwatch } = clocks;
  const local = createMemoryTokenBuckets(now);
  let isSlow = false;

  async function reserveShared(bucket: string, rate: BucketRate, maxWaitMs: number) {
    const elapsedMs = stopwatch();
    try {
      const waitMs = await shared.reserve(bucket, rate, maxWaitMs);
      isSlow = elapsedMs() > slowAfterMs;
      return waitMs;
    } catch (thrown) {
      isSlow = false; // unavailable, not slow: the next caller must get the error
      throw thrown;
    }
  }

  return {
    async reserve(bucket, rate, maxWaitMs) {
      const localWaitMs = await local.reserve(bucket, { perSecond: rate.perSecond * share(), burst: 1 }, 0);
      if (!isSlow || localWaitMs !== 0) return reserveShared(bucket, rate, maxWaitMs);
      reserveShared(bucket, rate, unlimitedWaitMs).catch(() => {});
      return 0;
    },
    take: shared.take,
  };
}

/** Measures how long others take to respond, not counting the time that this process is busy itself. */
function startIdleStopwatch(): () => number {
  const start = performance.eventLoopUtilization();
  return () => performance.eventLoopUtilization(start).idle;
}
