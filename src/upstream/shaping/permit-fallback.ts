/**
 * Permits while the shared token buckets cannot be reached: each instance uses its own share of the rate.
 *
 * The local buckets start empty, because other instances may have just emptied the shared ones. Permits that were taken
 * locally are taken from the shared buckets as well, as soon as those can be reached again.
 */

import { asGatewayError } from '../../request/errors.ts';
import { createMemoryTokenBuckets } from '../../state/memory.ts';
import type { BucketRate, LocalTokenBuckets, SharedTokenBuckets, TakeResult } from '../../state/ports.ts';
import { shareOf } from '../../state/token-bucket.ts';

export interface PermitFallback {
  isActive(): boolean;
  /** To be called when the shared buckets have failed. @throws `thrown`, unless it is STATE_UNAVAILABLE */
  begin(thrown: unknown): void;
  /** Takes a permit from a local bucket. Tries to reach the shared buckets once per second. @returns as `Permits.take` */
  take(bucket: string, rate: BucketRate): number;
}

interface PermitFallbackDependencies {
  /** This instance's share of the rate and of the bucket size, 0 to 1. */
  readonly share: () => number;
  /** Called when the fallback begins, with `true`, and when it ends. */
  readonly onFallback: (isActive: boolean) => void;
  /** Called after each attempt to reach the shared buckets. Until then, no permit is taken. */
  readonly onAttempt: () => void;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
}

/** How long the shared buckets are not used after they failed. Milliseconds. */
const retryAfterMs = 1_000;

export function createPermitFallback(
  shared: SharedTokenBuckets,
  { share, onFallback, onAttempt, now }: PermitFallbackDependencies,
): PermitFallback {
  let isActive = false;
  let isTrying = false;
  let retryAtMs = 0;
  let local: LocalTokenBuckets = createMemoryTokenBuckets(now);
  /** For each local bucket: how many permits were taken from it, its rate, and how many were drained before its first use. */
  const uses = new Map<string, { taken: number; rate: BucketRate; drained: number }>();

  const ownShareOf = (rate: BucketRate): BucketRate => ({
    ...shareOf(rate, share()),
    longestAheadMs: Number.POSITIVE_INFINITY, // the local clock is never set back
  });

  function begin(thrown: unknown): void {
    if (asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') throw thrown;
    retryAtMs = now() + retryAfterMs;
    if (isActive) return;
    isActive = true;
    local = createMemoryTokenBuckets(now);
    uses.clear();
    onFallback(true);
  }

  /** Takes a permit from a local bucket, which is drained before its first use. */
  function takeLocally(bucket: string, rate: BucketRate): TakeResult {
    const own = ownShareOf(rate);
    const use = uses.get(bucket) ?? { taken: 0, rate, drained: 0 };
    uses.set(bucket, use);
    const excess = own.burst - use.drained;
    if (excess > 0) {
      use.drained = own.burst;
      // One permit at a rate at which it costs as much time as `excess` permits.
      const asOnePermit = { perSecond: own.perSecond / excess, burst: 1 };
      local.reserve(bucket, asOnePermit, Number.POSITIVE_INFINITY);
    }
    const result = local.take(bucket, own);
    if (result.taken) use.taken += 1;
    return result;
  }

  async function tryShared(bucket: string, rate: BucketRate): Promise<void> {
    isTrying = true;
    try {
      await shared.lease(bucket, rate, { wanted: 0, maxWaitMs: 0 });
      for (const [used, use] of uses) await takeFromShared(used, use.taken, use.rate);
      isActive = false;
      onFallback(false);
    } catch (thrown) {
      begin(thrown);
    } finally {
      isTrying = false;
      onAttempt();
    }
  }

  /** Takes the permits that the local bucket has issued and not refilled from the shared one, as one permit of equal cost. */
  async function takeFromShared(bucket: string, taken: number, rate: BucketRate): Promise<void> {
    const own = ownShareOf(rate);
    const last = local.take(bucket, own);
    const missing = Math.min(taken, (last.fullInMs * own.perSecond) / 1_000 - Number(last.taken));
    if (missing > 0) {
      const asOnePermit = { perSecond: rate.perSecond / missing, burst: 1 };
      await shared.reserve(bucket, asOnePermit, Number.MAX_SAFE_INTEGER);
    }
    uses.delete(bucket);
  }

  return {
    isActive: () => isActive,
    begin,
    take(bucket, rate) {
      if (!isTrying && now() >= retryAtMs) void tryShared(bucket, rate);
      if (isTrying) return Number.POSITIVE_INFINITY;
      const { taken, nextPermitMs } = takeLocally(bucket, rate);
      return taken ? 0 : Math.max(1, nextPermitMs);
    },
  };
}
