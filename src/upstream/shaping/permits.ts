/** Permits to call the bank, from token buckets that all instances share, and their prefetch. */

import { createFallbackLimiter } from '../../state/fallback-limiter.ts';
import { createOptimisticLimiter } from '../../state/optimistic-limiter.ts';
import type { TokenBuckets } from '../../state/ports.ts';
import type { Telemetry } from '../../telemetry/create-telemetry.ts';

/**
 * Never fails, and hardly waits for a slow state.
 *
 * @param expectedInstances while the state is unavailable, each of these instances uses its share of the rate
 */
export function createSharedPermits(
  shared: TokenBuckets,
  expectedInstances: () => number,
  { log, metrics }: Pick<Telemetry, 'log' | 'metrics'>,
): TokenBuckets {
  const share = () => 1 / expectedInstances();
  return createFallbackLimiter(createOptimisticLimiter(shared, share), {
    share,
    initialFill: 'empty',
    onFallback(isAlone) {
      const what = isAlone ? 'only its own share of the rate' : 'the shared rate again';
      log('warn', `calls to the bank: this instance uses ${what}`);
      metrics.set('penstock_shaping_alone', {}, Number(isAlone));
    },
  });
}

/** Requests permits ahead of use, at most one of them in the future. */
export interface PermitPrefetch {
  /** Requests permits until `count` of them are pending, as far as that is allowed. */
  request(count: number): void;
  /** How many permits are requested or reserved, and not delivered yet. */
  pendingCount(): number;
  /** Whether any request is unanswered: a permit may be available immediately. */
  isRequesting(): boolean;
}

interface PermitPrefetchDependencies {
  /**
   * Reserves the next permit. Never rejects.
   *
   * @returns milliseconds until the permit is valid, or `undefined` if that exceeds `maxWaitMs`
   */
  readonly reserve: (maxWaitMs: number) => Promise<number | undefined>;
  /** The longest wait of any call. */
  readonly maxWaitMs: number;
  /** A permit is valid now; it is lost unless it is used immediately. */
  readonly onPermit: () => void;
  /** The next permit would exceed `maxWaitMs`. */
  readonly onOutOfReach: () => void;
  /** More permits may be requested. */
  readonly onProgress: () => void;
}

/** Concurrent requests while permits are available immediately. */
const maxConcurrentRequests = 32;

/**
 * Reserves one permit ahead. Requests further permits only while permits are available immediately, and takes them only
 * if they are. Their number doubles with each immediate permit, and returns to one with the first wait: an empty bucket
 * costs one request per permit, not one per call.
 */
export function createPermitPrefetch({
  reserve,
  maxWaitMs,
  onPermit,
  onOutOfReach,
  onProgress,
}: PermitPrefetchDependencies): PermitPrefetch {
  let pending = 0;
  let requesting = 0;
  let concurrency = 1;

  async function requestPermit(): Promise<void> {
    const isAhead = pending === 0;
    pending += 1;
    requesting += 1;
    const waitMs = await reserve(isAhead ? maxWaitMs : 0);
    requesting -= 1;
    concurrency = waitMs === 0 ? Math.min(concurrency * 2, maxConcurrentRequests) : 1;
    if (waitMs === 0) return deliver();
    // Timers count whole milliseconds: rounded down, the permit would be used too early.
    if (waitMs !== undefined) setTimeout(deliver, Math.ceil(waitMs));
    else pending -= 1;
    if (waitMs === undefined && isAhead) onOutOfReach();
    onProgress();
  }

  function deliver(): void {
    pending -= 1;
    onPermit();
    onProgress();
  }

  return {
    request(count) {
      while (pending < Math.min(count, concurrency)) void requestPermit();
    },
    pendingCount: () => pending,
    isRequesting: () => requesting > 0,
  };
}
