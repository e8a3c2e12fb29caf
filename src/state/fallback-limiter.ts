/** Token buckets that keep working without the shared state: each instance then uses its own share of the rate. */

import { asGatewayError } from '../request/errors.ts';
import { createMemoryTokenBuckets } from './memory.ts';
import type { BucketRate, TokenBuckets } from './ports.ts';

/** How long the shared state is not asked after it failed. Milliseconds. */
const retryStateAfterMs = 1_000;

interface FallbackLimiterOptions {
  /** This instance's share of the rate and of the bucket size, 0 to 1. */
  readonly share: () => number;
  /**
   * Fill level of the local bucket at the start of a fallback. Use `empty` where the total of all instances must not
   * exceed the rate: other instances may have just emptied the shared bucket. Permits taken locally are then taken from
   * the shared bucket as well, as soon as it can be reached again.
   */
  readonly initialFill: 'full' | 'empty';
  /** Called with `true` when the fallback begins, and with `false` when it ends. */
  readonly onFallback?: (isLocal: boolean) => void;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

/** Permits that were taken from one local bucket. */
interface LocalUse {
  readonly rate: BucketRate;
  readonly permits: number;
}

/** Never throws STATE_UNAVAILABLE. */
export function createFallbackLimiter(shared: TokenBuckets, options: FallbackLimiterOptions): TokenBuckets {
  const { share, initialFill, onFallback = () => {}, now = () => performance.now() } = options;
  let local = createMemoryTokenBuckets(now);
  /** For each local bucket, how many permits it lacked at the start of the fallback. */
  let drained = new Map<string, number>();
  const localUse = new Map<string, LocalUse>();
  let transfer: Promise<void> | undefined;
  let localUntilMs = Number.NEGATIVE_INFINITY;
  let isLocal = false;

  function switchTo(nextIsLocal: boolean): void {
    if (isLocal === nextIsLocal) return;
    isLocal = nextIsLocal;
    if (isLocal) {
      local = createMemoryTokenBuckets(now);
      drained = new Map();
      localUse.clear();
    }
    onFallback(isLocal);
  }

  const shareOf = (rate: BucketRate): BucketRate => ({
    ...rate,
    perSecond: rate.perSecond * share(),
    burst: rate.burst * share(),
  });

  /** The rate of a local bucket, which is drained before its first use if it must start empty. */
  async function localRate(bucket: string, rate: BucketRate): Promise<BucketRate> {
    const own = shareOf(rate);
    const size = Math.max(1, own.burst);
    const excess = size - (drained.get(bucket) ?? 0);
    if (initialFill === 'empty' && excess > 0) {
      drained.set(bucket, size);
      // One permit at a rate at which it costs as much time as `excess` permits.
      await local.reserve(bucket, { perSecond: own.perSecond / excess, burst: 1 }, Number.POSITIVE_INFINITY);
    }
    return own;
  }

  async function reserveLocally(bucket: string, rate: BucketRate, maxWaitMs: number) {
    const waitMs = await local.reserve(bucket, await localRate(bucket, rate), maxWaitMs);
    const { permits } = localUse.get(bucket) ?? { permits: 0 };
    if (waitMs !== undefined && initialFill === 'empty') localUse.set(bucket, { rate, permits: permits + 1 });
    return waitMs;
  }

  /** Takes from the shared buckets what the local ones issued and have not refilled since, as one permit of equal cost. */
  async function transferLocalUse(): Promise<void> {
    for (const [bucket, { rate, permits }] of localUse) {
      const own = shareOf(rate);
      const { taken, fullInMs } = await local.take(bucket, own);
      const missing = Math.min(permits, (fullInMs * own.perSecond) / 1_000 - Number(taken));
      if (missing > 0) {
        const asOnePermit = { perSecond: rate.perSecond / missing, burst: 1 };
        await shared.reserve(bucket, asOnePermit, Number.MAX_SAFE_INTEGER);
      }
      localUse.delete(bucket);
    }
  }

  async function withFallback<Result>(
    useShared: () => Promise<Result>,
    useLocal: () => Promise<Result>,
  ): Promise<Result> {
    if (now() < localUntilMs) return useLocal();
    try {
      if (localUse.size > 0) {
        transfer ??= transferLocalUse().finally(() => {
          transfer = undefined;
        });
        await transfer;
      }
      const result = await useShared();
      localUntilMs = Number.NEGATIVE_INFINITY;
      switchTo(false);
      return result;
    } catch (thrown) {
      if (asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') throw thrown;
      localUntilMs = now() + retryStateAfterMs;
      switchTo(true);
      return useLocal();
    }
  }

  return {
    reserve: (bucket, rate, maxWaitMs) =>
      withFallback(
        () => shared.reserve(bucket, rate, maxWaitMs),
        () => reserveLocally(bucket, rate, maxWaitMs),
      ),
    take: (bucket, rate) =>
      withFallback(
        () => shared.take(bucket, rate),
        async () => local.take(bucket, await localRate(bucket, rate)),
      ),
  };
}
