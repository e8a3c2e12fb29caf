/**
 * Permits to call the bank, from one token bucket per environment.
 *
 * A bucket of this process is used directly. From a bucket that instances share, an instance leases a block of permits,
 * and takes single permits from its block (ADR 81).
 */

import { randomUUID } from 'node:crypto';
import type { RequestedPermit } from '../../request/messages.ts';
import {
  type BucketRate,
  type GrantedPermits,
  type LocalTokenBuckets,
  type PermitRequest,
  permitLeaseMs,
  type SharedTokenBuckets,
  type TokenBuckets,
} from '../../state/ports.ts';
import { shareOf } from '../../state/token-bucket.ts';
import type { Telemetry } from '../../telemetry/create-telemetry.ts';
import { createPermitFallback, type PermitFallback } from './permit-fallback.ts';

/** The permits of all environments. They outlive a reload. */
export interface PermitSources {
  of(environment: string): Permits;
}

export interface Permits {
  /**
   * Takes a permit if one is available without waiting. Never fails.
   *
   * @param waiting how many calls of this kind (payments, or others) need a permit now, this one included
   * @returns 0 = taken; otherwise the milliseconds after which to try again, or `Infinity`: then `tryAgain` is called once
   */
  take(rates: PermitRates, isPayment: boolean, waiting: number, tryAgain: () => void): number;
  /**
   * Requests a permit for a call that is not ready to be sent, in the batch of the commands that it waits for anyway. Absent if
   * the bucket belongs to this process.
   *
   * @returns `undefined` if there is a permit in memory, or probably none in the bucket
   */
  prefetch?(rates: PermitRates, isPayment: boolean): RequestedPermit | undefined;
}

/** The token bucket of an environment, as payments and as other calls use it. */
export interface PermitRates {
  readonly payments: BucketRate;
  /** With a smaller burst: the rest is reserved for payments. */
  readonly others: BucketRate;
  /** The longest wait of any payment for its permit. */
  readonly maxWaitMs: number;
}

interface PermitDependencies {
  /** How many instances share the buckets. */
  readonly instances: () => number;
  /** The part of the rate that this instance uses while there are no shared buckets, or they cannot be reached: 0 to 1. */
  readonly share: () => number;
  readonly telemetry: Pick<Telemetry, 'log' | 'metrics'>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

export function createPermitSources(buckets: TokenBuckets, dependencies: PermitDependencies): PermitSources {
  const create = buckets.isShared
    ? sharedPermits(buckets, dependencies)
    : localPermits(buckets, dependencies);
  const sources = new Map<string, Permits>();
  return {
    of(environment) {
      const permits = sources.get(environment) ?? create(environment);
      sources.set(environment, permits);
      return permits;
    },
  };
}

const localPermits =
  (buckets: LocalTokenBuckets, { share }: Pick<PermitDependencies, 'share'>) =>
  (environment: string): Permits => ({
    take(rates, isPayment) {
      const rate = isPayment ? rates.payments : rates.others;
      const { taken, nextPermitMs } = buckets.take(bucketOf(environment), shareOf(rate, share()));
      return taken ? 0 : Math.max(1, nextPermitMs);
    },
  });

const bucketOf = (environment: string) => `bucket:${environment}`;

/** One fallback for all environments. */
function sharedPermits(
  buckets: SharedTokenBuckets,
  { instances, share, telemetry, now = () => performance.now() }: PermitDependencies,
): (environment: string) => Permits {
  const { log, metrics } = telemetry;
  const notifyAll = new Set<() => void>();
  const fallback = createPermitFallback(buckets, {
    share,
    onFallback(isAlone) {
      const what = isAlone ? 'only its own share of shaping.rate' : 'the shared rate again';
      log('warn', `rate limiting: this instance uses ${what}`);
      metrics.set('penstock_shaping_alone', {}, Number(isAlone));
    },
    onAttempt() {
      for (const notify of notifyAll) notify();
    },
    now,
  });
  return (environment) => {
    const leased = createLeasedPermits(environment, { buckets, fallback, instances, now });
    notifyAll.add(leased.notify);
    return leased.permits;
  };
}

/** A block is as large as the number of permits used in a period. Permits that were not used for a period are returned. */
const periodMs = 100;
/** Blocks are leased only if the rate gives each instance at least this many permits per period. */
const minPermitsPerInstance = 2;
/** A block is leased after this many uses in this period and the one before: with fewer, it costs more requests than it saves. */
const minUses = 2;
/** A block is used only for half of its lease, so that a renewal reaches the store before the lease ends. */
const usableMs = permitLeaseMs / 2;
/**
 * How long a permit that was requested in advance is kept for its call, in milliseconds. It is not leased: with later use, the
 * calls would exceed the rate.
 */
const keptMs = 50;

interface LeasedPermitsDependencies {
  readonly buckets: SharedTokenBuckets;
  readonly fallback: PermitFallback;
  readonly instances: () => number;
  readonly now: () => number;
}

/**
 * The block of this instance, and its requests to the shared bucket.
 *
 * Permits for waiting payments are requested separately: payments may use the whole burst, and they reserve the next permit even
 * if it lies in the future. So while payments wait on any instance, only the part of the burst that is reserved for payments is
 * left: no other call gets a permit, and no block is renewed.
 */
function createLeasedPermits(
  environment: string,
  { buckets, fallback, instances, now }: LeasedPermitsDependencies,
): { readonly permits: Permits; readonly notify: () => void } {
  const bucket = bucketOf(environment);
  const leaseId = randomUUID();
  /** To be called once, when permits may be available. */
  let waiters = new Set<() => void>();
  /** Unused permits of the block, and the rates at which they were granted. */
  let held = 0;
  let heldUntilMs = Number.NEGATIVE_INFINITY;
  let heldRates: PermitRates | undefined;
  /** Whether the store counts permits of this block as unused. */
  let isLeased = false;
  /** Permits that `offer` gives to the waiting calls at this moment. They are not leased: unused ones are given back or lost. */
  let offered = 0;
  let isPaymentRequested = false;
  let retryPaymentAtMs = Number.NEGATIVE_INFINITY;
  let isBlockRequested = false;
  let retryBlockAtMs = Number.NEGATIVE_INFINITY;
  /** Permits requested in advance that have not arrived yet, and whose calls wait now or no longer need them. */
  let arriving = 0;
  let used = 0;
  let usedBefore = 0;
  let periodStartMs = Number.NEGATIVE_INFINITY;
  let periodTimer: NodeJS.Timeout | undefined;

  function take(rates: PermitRates, isPayment: boolean, waiting: number, tryAgain: () => void): number {
    const nowMs = now();
    if (nowMs >= heldUntilMs) held = 0;
    if (offered === 0 && held === 0) {
      const waitMs = request(rates, isPayment, waiting);
      if (waitMs === Number.POSITIVE_INFINITY) waiters.add(tryAgain);
      return waitMs;
    }
    if (offered > 0) offered -= 1;
    else held -= 1;
    countUse(rates, nowMs);
    return 0;
  }

  function countUse(rates: PermitRates, nowMs: number): void {
    if (!periodTimer && nowMs - periodStartMs >= periodMs) startPeriod(nowMs);
    used += 1;
    if (held < blockSize(rates) / 2 && !fallback.isActive()) requestBlock(rates, 0);
  }

  function prefetch(rates: PermitRates, isPayment: boolean): RequestedPermit | undefined {
    const nowMs = now();
    const isHeld = held > 0 && nowMs < heldUntilMs;
    if (isHeld || nowMs < (isPayment ? retryPaymentAtMs : retryBlockAtMs) || fallback.isActive())
      return undefined;
    const rate = isPayment ? rates.payments : rates.others;
    /** The permit, while it is kept for the call. */
    let kept: GrantedPermits | undefined;
    let keptUntilMs = 0;
    let isAnswered = false;
    /** Whether the call has used the permit, waits for any permit, or needs none. */
    let isOver = false;
    const onAnswer = (answer: GrantedPermits | undefined) => {
      isAnswered = true;
      if (answer?.granted === 0 && !isPayment) retryBlockAtMs = nowMs + answer.waitMs + spreadMs(rates);
      const permit = answer?.granted === 1 ? answer : undefined;
      if (isOver) {
        arriving -= 1;
        offerOrGiveBack(rate, permit);
      } else if (permit) {
        kept = permit;
        keptUntilMs = now() + keptMs;
      }
    };
    const end = () => {
      if (isOver) return;
      isOver = true;
      if (!isAnswered) arriving += 1;
      else if (kept) offerOrGiveBack(rate, kept);
    };
    buckets.lease(bucket, rate, { wanted: 1, maxWaitMs: 0 }).then(onAnswer, (thrown) => {
      fallback.begin(thrown);
      onAnswer(undefined);
    });
    return {
      environment,
      take() {
        if (!kept || isOver || now() > keptUntilMs) {
          end();
          return false;
        }
        isOver = true;
        countUse(rates, now());
        return true;
      },
      release: end,
    };
  }

  /**
   * Offers a permit that its own call has not used to the waiting calls, or gives it back.
   *
   * @param permit `undefined` if none was granted: the waiting calls then request their own
   */
  function offerOrGiveBack(rate: BucketRate, permit: GrantedPermits | undefined): void {
    const unused = offer(permit ? 1 : 0);
    if (permit && unused > 0) buckets.giveBack(bucket, rate, permit.after).catch(() => {}); // if this fails, the permit is lost
  }

  /** Requests permits for waiting calls. @returns the result of `take` */
  function request(rates: PermitRates, isPayment: boolean, waiting: number): number {
    if (arriving > 0) return Number.POSITIVE_INFINITY;
    if (fallback.isActive()) return fallback.take(bucket, isPayment ? rates.payments : rates.others);
    return isPayment ? requestForPayments(rates, waiting) : requestBlock(rates, waiting);
  }

  function startPeriod(nowMs: number): void {
    usedBefore = nowMs - periodStartMs < 2 * periodMs ? used : 0;
    used = 0;
    periodStartMs = nowMs;
  }

  /** How many permits the block should contain; 0 if permits are requested one by one. */
  const blockSize = (rates: PermitRates): number => (used + usedBefore < minUses ? 0 : maxHeld(rates));

  /** As many as were used in a period, if the rate allows blocks. */
  function maxHeld({ others: { perSecond } }: PermitRates): number {
    const perPeriod = (perSecond * periodMs) / 1_000;
    if (perPeriod < minPermitsPerInstance * instances()) return 0;
    return Math.min(Math.max(used, usedBefore), Math.floor(perPeriod));
  }

  function requestForPayments({ payments, maxWaitMs }: PermitRates, waiting: number): number {
    if (isPaymentRequested) return Number.POSITIVE_INFINITY;
    const retryMs = retryPaymentAtMs - now();
    if (retryMs > 0) return retryMs;
    isPaymentRequested = true;
    const deliver = (granted: number) => {
      isPaymentRequested = false;
      offer(granted);
    };
    buckets.lease(bucket, payments, { wanted: waiting, maxWaitMs }).then(
      ({ granted, waitMs }) => {
        if (granted === 0) retryPaymentAtMs = now() + waitMs;
        // Timers count whole milliseconds: rounded down, the permit would be used too early.
        if (granted > 0 && waitMs > 0) setTimeout(deliver, Math.ceil(waitMs), granted);
        else deliver(granted);
      },
      (thrown) => {
        fallback.begin(thrown);
        deliver(0);
      },
    );
    return Number.POSITIVE_INFINITY;
  }

  /** Requests permits for waiting calls, and renews the block. */
  function requestBlock(rates: PermitRates, waiting: number): number {
    if (isBlockRequested) return Number.POSITIVE_INFINITY;
    const retryMs = retryBlockAtMs - now();
    if (retryMs > 0) return retryMs;
    const size = blockSize(rates);
    heldRates = rates;
    if (size > 0) changeBlock(rates, waiting, Math.max(waiting, size - held), 0);
    else send(rates, { wanted: waiting, maxWaitMs: 0 }, offer);
    return Number.POSITIVE_INFINITY;
  }

  function changeBlock(rates: PermitRates, waiting: number, wanted: number, returned: number): void {
    held -= returned;
    const lease = { id: leaseId, held, returned, immediate: waiting };
    const sentAtMs = now();
    send(rates, { wanted, maxWaitMs: 0, lease }, (granted) => {
      const needed = Math.min(granted, waiting);
      isLeased = lease.held + granted - needed > 0;
      periodTimer ??= setTimeout(onPeriodEnd, periodMs).unref();
      held += granted - needed;
      heldUntilMs = sentAtMs + usableMs;
      offer(needed);
    });
  }

  function send(rates: PermitRates, request: PermitRequest, onGranted: (granted: number) => void): void {
    isBlockRequested = true;
    const sentAtMs = now();
    buckets.lease(bucket, rates.others, request).then(
      ({ granted, waitMs }) => {
        isBlockRequested = false;
        if (request.wanted > 0 && granted === 0) retryBlockAtMs = sentAtMs + waitMs + spreadMs(rates);
        onGranted(granted);
      },
      (thrown) => {
        isBlockRequested = false;
        fallback.begin(thrown);
        offer(0);
      },
    );
  }

  /**
   * Up to an eighth of an interval, so that the instances retry in random order: otherwise the one closest to the store would
   * get every permit.
   */
  const spreadMs = ({ others }: PermitRates) =>
    instances() > 1 ? (Math.random() * 125) / others.perSecond : 0;

  /** Runs once per period until no permit is leased. Reports the use of the block, and returns permits that were not used. */
  function onPeriodEnd(): void {
    const nowMs = now();
    startPeriod(nowMs);
    if (nowMs >= heldUntilMs) held = 0;
    periodTimer = isLeased ? setTimeout(onPeriodEnd, periodMs).unref() : undefined;
    if (!isLeased || !heldRates || isBlockRequested || fallback.isActive()) return;
    changeBlock(heldRates, 0, 0, Math.max(0, held - maxHeld(heldRates)));
  }

  /** Offers permits to the waiting calls. @returns how many of them no call has used */
  function offer(count: number): number {
    offered = count;
    notify();
    const unused = offered;
    offered = 0;
    return unused;
  }

  function notify(): void {
    const current = waiters;
    waiters = new Set();
    for (const tryAgain of current) tryAgain();
  }

  return { permits: { take, prefetch }, notify };
}
