/** Turns of the shared bucket; while the state is out of reach, an instance goes on with a part of it for itself. */

import { asGatewayError } from '../request/errors.ts';
import { createMemoryTokenBuckets } from './memory.ts';
import type { BucketRate, TokenBuckets } from './ports.ts';

/** How long the state is left alone after it failed, in milliseconds: nobody waits for it meanwhile. */
const retryStateAfterMs = 1_000;

interface FallbackLimiterOptions {
  /** The part of the rate and of the bucket that this instance takes alone: 0 to 1. */
  readonly share: () => number;
  /**
   * What its own bucket holds when it begins. `empty` where the sum must be kept: the others may have emptied the
   * shared one just now. What is then taken alone is taken out of the shared one as soon as that is back.
   */
  readonly initialFill: 'full' | 'empty';
  /** Told whenever this instance begins to go on alone, and when it is with the others again. */
  readonly onFallback?: (alone: boolean) => void;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
}

/** What was taken alone from one bucket. */
interface LocalUse {
  readonly rate: BucketRate;
  readonly permits: number;
}

/** Never throws STATE_UNAVAILABLE. */
export function createFallbackLimiter(shared: TokenBuckets, insurance: FallbackLimiterOptions): TokenBuckets {
  const { share, initialFill, onFallback = () => {}, now = () => performance.now() } = insurance;
  let local = createMemoryTokenBuckets(now);
  /** Of each bucket, how much it lacked when it began. */
  let begun = new Map<string, number>();
  const localUse = new Map<string, LocalUse>();
  let paying: Promise<void> | undefined;
  let aloneUntilMs = Number.NEGATIVE_INFINITY;
  let alone = false;

  function turn(toAlone: boolean): void {
    if (alone === toAlone) return;
    alone = toAlone;
    if (alone) {
      local = createMemoryTokenBuckets(now);
      begun = new Map();
      localUse.clear();
    }
    onFallback(alone);
  }

  async function ownBucket(bucket: string, rate: BucketRate): Promise<BucketRate> {
    const share = shareOf(rate);
    const size = Math.max(1, share.burst);
    const lacking = size - (begun.get(bucket) ?? 0);
    if (initialFill === 'empty' && lacking > 0) {
      begun.set(bucket, size);
      // One turn, however late it comes, at a rate at which it lasts as long as filling what lacks.
      await local.reserve(
        bucket,
        { perSecond: share.perSecond / lacking, burst: 1 },
        Number.POSITIVE_INFINITY,
      );
    }
    return share;
  }

  const shareOf = ({ perSecond, burst }: BucketRate): BucketRate => ({
    perSecond: perSecond * share(),
    burst: burst * share(),
  });

  async function reserveAlone(bucket: string, rate: BucketRate, maxWaitMs: number) {
    const waitMs = await local.reserve(bucket, await ownBucket(bucket, rate), maxWaitMs);
    const { permits } = localUse.get(bucket) ?? { permits: 0 };
    if (waitMs !== undefined && initialFill === 'empty') localUse.set(bucket, { rate, permits: permits + 1 });
    return waitMs;
  }

  /** Of what was taken, that which the own bucket has not got back since: one turn that costs as much. */
  async function payBack(): Promise<void> {
    for (const [bucket, { rate, permits }] of localUse) {
      const share = shareOf(rate);
      const { taken, fullInMs } = await local.take(bucket, share);
      const missing = Math.min(permits, (fullInMs * share.perSecond) / 1_000 - Number(taken));
      if (missing > 0) {
        const atOnce = { perSecond: rate.perSecond / missing, burst: 1 };
        await shared.reserve(bucket, atOnce, Number.MAX_SAFE_INTEGER);
      }
      localUse.delete(bucket);
    }
  }

  async function asked<Answer>(
    together: () => Promise<Answer>,
    byMyself: () => Promise<Answer>,
  ): Promise<Answer> {
    if (now() < aloneUntilMs) return byMyself();
    try {
      if (localUse.size > 0) {
        paying ??= payBack().finally(() => {
          paying = undefined;
        });
        await paying;
      }
      const answer = await together();
      aloneUntilMs = Number.NEGATIVE_INFINITY;
      turn(false);
      return answer;
    } catch (thrown) {
      if (asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') throw thrown;
      aloneUntilMs = now() + retryStateAfterMs;
      turn(true);
      return byMyself();
    }
  }

  return {
    reserve: (bucket, rate, maxWaitMs) =>
      asked(
        () => shared.reserve(bucket, rate, maxWaitMs),
        () => reserveAlone(bucket, rate, maxWaitMs),
      ),
    take: (bucket, rate) =>
      asked(
        () => shared.take(bucket, rate),
        async () => local.take(bucket, await ownBucket(bucket, rate)),
      ),
  };
}
