/** Turns of the shared bucket; while the state is out of reach, an instance goes on with a part of it for itself. */

import { asGatewayError } from '../flow/errors.ts';
import { reservationsOn } from './memory.ts';
import type { BucketRate, Reservations } from './ports.ts';

/** How long the state is left alone after it failed, in milliseconds: nobody waits for it meanwhile. */
const awayMs = 1_000;

interface Insurance {
  /** The part of the rate and of the bucket that this instance takes alone: 0 to 1. */
  readonly part: () => number;
  /**
   * What its own bucket holds when it begins. `nothing` where the sum must be kept: the others may have emptied the
   * shared one just now. What is then taken alone is taken out of the shared one as soon as that is back.
   */
  readonly beginsWith: 'all of it' | 'nothing';
  /** Told whenever this instance begins to go on alone, and when it is with the others again. */
  readonly told?: (alone: boolean) => void;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
}

/** What was taken alone from one bucket. */
interface Owed {
  readonly rate: BucketRate;
  readonly turns: number;
}

/** Never throws STATE_UNAVAILABLE. */
export function insuredReservations(shared: Reservations, insurance: Insurance): Reservations {
  const { part, beginsWith, told = () => {}, now = () => performance.now() } = insurance;
  let own = reservationsOn(now);
  /** Of each bucket, how much it lacked when it began. */
  let begun = new Map<string, number>();
  const owed = new Map<string, Owed>();
  let paying: Promise<void> | undefined;
  let aloneUntilMs = Number.NEGATIVE_INFINITY;
  let alone = false;

  function turn(toAlone: boolean): void {
    if (alone === toAlone) return;
    alone = toAlone;
    if (alone) {
      own = reservationsOn(now);
      begun = new Map();
      owed.clear();
    }
    told(alone);
  }

  async function ownBucket(bucket: string, rate: BucketRate): Promise<BucketRate> {
    const share = shareOf(rate);
    const size = Math.max(1, share.burst);
    const lacking = size - (begun.get(bucket) ?? 0);
    if (beginsWith === 'nothing' && lacking > 0) {
      begun.set(bucket, size);
      // One turn, however late it comes, at a rate at which it lasts as long as filling what lacks.
      await own.reserve(bucket, { perSecond: share.perSecond / lacking, burst: 1 }, Number.POSITIVE_INFINITY);
    }
    return share;
  }

  const shareOf = ({ perSecond, burst }: BucketRate): BucketRate => ({
    perSecond: perSecond * part(),
    burst: burst * part(),
  });

  async function reserveAlone(bucket: string, rate: BucketRate, maxWaitMs: number) {
    const waitMs = await own.reserve(bucket, await ownBucket(bucket, rate), maxWaitMs);
    const { turns } = owed.get(bucket) ?? { turns: 0 };
    if (waitMs !== undefined && beginsWith === 'nothing') owed.set(bucket, { rate, turns: turns + 1 });
    return waitMs;
  }

  /** Of what was taken, that which the own bucket has not got back since: one turn that costs as much. */
  async function payBack(): Promise<void> {
    for (const [bucket, { rate, turns }] of owed) {
      const share = shareOf(rate);
      const { taken, fullMs } = await own.take(bucket, share);
      const missing = Math.min(turns, (fullMs * share.perSecond) / 1_000 - Number(taken));
      if (missing > 0) {
        const atOnce = { perSecond: rate.perSecond / missing, burst: 1 };
        await shared.reserve(bucket, atOnce, Number.MAX_SAFE_INTEGER);
      }
      owed.delete(bucket);
    }
  }

  async function asked<Answer>(
    together: () => Promise<Answer>,
    byMyself: () => Promise<Answer>,
  ): Promise<Answer> {
    if (now() < aloneUntilMs) return byMyself();
    try {
      if (owed.size > 0) {
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
      aloneUntilMs = now() + awayMs;
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
        async () => own.take(bucket, await ownBucket(bucket, rate)),
      ),
  };
}
