/** Turns of a shared bucket, without waiting for a state that is slow to answer. */

import { performance } from 'node:perf_hooks';
import { createMemoryTokenBuckets } from './memory.ts';
import type { BucketRate, TokenBuckets } from './ports.ts';

/** A state that takes longer to answer is slow, in milliseconds. */
const slowAfterMs = 15;
/** Longer than any turn is away: what was taken already is booked in any case. Milliseconds. */
const unlimitedWaitMs = 3_600_000;

interface OptimisticLimiterClocks {
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
  /** Begins to count how long an answer takes, in milliseconds. */
  readonly stopwatch?: () => () => number;
}

/**
 * While the state is slow, a turn is taken at once if this instance has taken none for as long as one lasts at its part
 * of the rate, and booked in the shared bucket afterwards; all others wait for the bucket. So a call now and then is not
 * late, none is left uncounted, and each instance is ahead of the bucket by one turn at most.
 *
 * @param share of the rate at which turns are taken before the shared bucket has answered: 0 to 1
 * @throws GatewayError STATE_UNAVAILABLE as the shared bucket does
 */
export function createOptimisticLimiter(
  shared: TokenBuckets,
  share: () => number,
  { now = () => performance.now(), stopwatch = startIdleStopwatch }: OptimisticLimiterClocks = {},
): TokenBuckets {
  const local = createMemoryTokenBuckets(now);
  let slow = false;

  async function booked(bucket: string, rate: BucketRate, maxWaitMs: number): Promise<number | undefined> {
    const tookMs = stopwatch();
    try {
      const waitMs = await shared.reserve(bucket, rate, maxWaitMs);
      slow = tookMs() > slowAfterMs;
      return waitMs;
    } catch (thrown) {
      slow = false; // out of reach: whoever asks next must hear of it
      throw thrown;
    }
  }

  return {
    async reserve(bucket, rate, maxWaitMs) {
      const mine = await local.reserve(bucket, { perSecond: rate.perSecond * share(), burst: 1 }, 0);
      if (!slow || mine !== 0) return booked(bucket, rate, maxWaitMs);
      booked(bucket, rate, unlimitedWaitMs).catch(() => {});
      return 0;
    },
    take: shared.take,
  };
}

// MERGED HEADER (rewrite or remove):
/* How long others took to answer, apart from the time that this process was busy itself. */

/** Begins to count. @returns milliseconds since then in which the event loop had nothing to do */
function startIdleStopwatch(): () => number {
  const begun = performance.eventLoopUtilization();
  return () => performance.eventLoopUtilization(begun).idle;
}
