/**
 * How fast one environment of the bank is called: turns from a bucket that all instances share, slots of this instance.
 *
 * The instance books turns, not the request: whoever is first in the line when a turn comes takes it. So a payment
 * overtakes all that waits, although nobody knew of it when the turn was booked.
 */

import type { ShapingSettings } from '../../config/schema.ts';
import type { Lane } from '../../pis/operations.ts';
import { GatewayError, retryLater } from '../../request/errors.ts';
import { createLinkedList } from '../../request/linked-list.ts';
import type { BucketRate, TokenBuckets } from '../../state/ports.ts';
import type { AdaptiveRate, ThrottleResponse } from './adaptive-rate.ts';
import { createFairQueue } from './fair-queue.ts';
import { createPermitPrefetch } from './permit-prefetch.ts';
import { createQueuedCall, type LimitedCall, type QueuedCall } from './queued-call.ts';

export interface RateLimiter {
  /**
   * Waits for a turn and a slot, then sends, and learns from the answer.
   *
   * @throws GatewayError QUEUE_FULL or QUEUE_TIMEOUT, nothing was sent then; and whatever `send` throws
   */
  run<Answer extends ThrottleResponse>(call: LimitedCall, send: () => Promise<Answer>): Promise<Answer>;
  stats(): RateLimiterStats;
  /** For a reload: it is told of no pause any more, and keeps those it learns of with the next turn. */
  close(): void;
}

interface RateLimiterDependencies {
  /** Never fails: goes on alone while the state is out of reach. */
  readonly permits: Pick<TokenBuckets, 'reserve'>;
  readonly adaptiveRate: AdaptiveRate;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
}

/** Asking for a turn that is there takes time itself: who may not wait at all waits for that. Milliseconds. */
const minQueueMs = 50;

/** The shaper of one environment, in one instance. */
export function createRateLimiter(
  environment: string,
  settings: ShapingSettings,
  parts: RateLimiterDependencies,
): RateLimiter {
  const { permits, adaptiveRate, now = () => performance.now() } = parts;
  const { maxConcurrent, maxWait } = settings;
  const queue = createFairQueue<QueuedCall>(settings.queue);
  const untimed = createLinkedList<() => void>();
  let running = 0;
  let resumeTimer: NodeJS.Timeout | undefined;

  const prefetchFor = (whom: (waiter: QueuedCall) => boolean, rate: () => BucketRate) =>
    createPermitPrefetch({
      reserve: (maxWaitMs) => permits.reserve(`bucket:${environment}`, rate(), maxWaitMs),
      maxWaitMs: Math.max(...Object.values(maxWait)),
      onPermit: admitNext,
      onOutOfReach: () => refuseAll(whom, queueTimeout),
      onProgress: proceed,
    });
  const paymentPermits = prefetchFor(isPayment, adaptiveRate.rate);
  const otherPermits = prefetchFor(
    (waiter) => !isPayment(waiter),
    () => withPaymentReserve(adaptiveRate.rate()),
  );
  const close = adaptiveRate.onPause(() => {
    refuseAll(isPauseTooLong, () => pausedByBank(adaptiveRate.pausedMs()));
    proceed();
  });

  function proceed(): void {
    if (queue.size() === 0) return;
    const pausedMs = adaptiveRate.pausedMs();
    if (pausedMs > 0) resumeIn(pausedMs);
    else requestPermits(maxConcurrent - running);
    if (paymentPermits.isRequesting() || otherPermits.isRequesting()) return; // it may well go at once
    for (const startClock of untimed.toArray()) startClock();
  }

  /** Each turn on its way has a slot of its own. */
  function requestPermits(slots: number): void {
    const payments = queue.size('write');
    paymentPermits.request(Math.min(payments, slots - otherPermits.pendingCount()));
    otherPermits.request(Math.min(queue.size() - payments, slots - paymentPermits.pendingCount()));
  }

  function resumeIn(ms: number): void {
    clearTimeout(resumeTimer);
    resumeTimer = setTimeout(proceed, Math.ceil(ms));
  }

  /** The first in the line takes the turn. Some may have waited too long unnoticed, or their TPPs have left. */
  function admitNext(): void {
    if (adaptiveRate.pausedMs() > 0 || running >= maxConcurrent) return;
    let first = queue.dequeue();
    for (; first && (first.isDisconnected() || first.untilMs < now()); first = queue.dequeue())
      first.refuse(first.isDisconnected() ? clientDisconnected() : queueTimeout());
    if (!first) return;
    running += 1;
    first.admit();
  }

  /** A status read never waits for the bank to resume: what is known of it can be served at once. */
  const isPauseTooLong = ({ lane, untilMs }: Pick<QueuedCall, 'lane' | 'untilMs'>) =>
    adaptiveRate.pausedMs() > 0 && (lane === 'status' || untilMs <= now() + adaptiveRate.pausedMs());

  function refuseAll(which: (waiter: QueuedCall) => boolean, why: () => GatewayError): void {
    for (const waiter of queue.all().filter(which)) refuse(waiter, why());
  }

  function refuse(waiter: QueuedCall, why: GatewayError): void {
    if (queue.remove(waiter)) waiter.refuse(why);
  }

  /** Comes back with a turn and a slot. */
  async function admission(call: LimitedCall): Promise<void> {
    if (call.signal?.aborted) throw clientDisconnected();
    const untilMs = Math.min(now() + Math.max(minQueueMs, maxWait[call.lane]), call.deadlineAtMs);
    if (isPauseTooLong({ lane: call.lane, untilMs })) throw pausedByBank(adaptiveRate.pausedMs());
    const { waiter, gone } = createQueuedCall(call, untilMs, {
      onTimeout: (one) => refuse(one, queueTimeout()),
      onDisconnect: (one) => refuse(one, clientDisconnected()),
    });
    const out = queue.enqueue(waiter);
    out?.refuse(queueFull());
    const leave = untimed.append(() => {
      waiter.startTimer(untilMs - now());
      leave();
    });
    proceed();
    return gone.finally(leave);
  }

  return {
    async run(call, send) {
      await admission(call);
      const sentAtMs = now();
      try {
        const answer = await send();
        adaptiveRate.onResponse(answer, sentAtMs);
        return answer;
      } finally {
        running -= 1;
        proceed();
      }
    },
    stats: () => ({
      waiting: { write: queue.size('write'), read: queue.size('read'), status: queue.size('status') },
      running,
      perSecond: adaptiveRate.rate().perSecond,
      pausedMs: adaptiveRate.pausedMs(),
    }),
    close,
  };
}

const isPayment = ({ lane }: QueuedCall) => lane === 'write';

/**
 * The bucket as reads see it: half of what it holds is left for payments. A burst of reads, or many instances that have
 * each booked a turn for one, then make no payment wait; and all together never send more than the bucket holds.
 */
const withPaymentReserve = ({ perSecond, burst }: BucketRate): BucketRate => ({
  perSecond,
  burst: burst - Math.floor(burst / 2),
});

// MERGED HEADER (rewrite or remove):
/* What operators see of a shaper. */

/** What there is to see of a shaper at this moment. */
export interface RateLimiterStats {
  readonly waiting: Readonly<Record<Lane, number>>;
  /** Calls under way. */
  readonly running: number;
  /** Turns a second, of all instances together. */
  readonly perSecond: number;
  /** How long the bank is left alone on its own wish; 0 = not at all. Milliseconds. */
  readonly pausedMs: number;
}

// MERGED HEADER (rewrite or remove):
/* Why a call was not sent although nothing is wrong with the bank: told as errors of the table. */

/** The line is full, and nothing in it can make room for this call. */
function queueFull(): GatewayError {
  return new GatewayError(
    'QUEUE_FULL',
    'Too many calls are waiting for the bank; nothing was sent. Try again.',
  );
}

/** It waited for as long as a call of its lane may, or its deadline came. */
function queueTimeout(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The turn of this request did not come in time; nothing was sent. Try again.',
  );
}

/** The bank asked to be left alone, for longer than the call can wait. */
const pausedByBank = (pausedMs: number): GatewayError =>
  retryLater(pausedMs, 'QUEUE_TIMEOUT', 'The bank asks for a pause');

/** The TPP hung up while its call waited: nobody reads this, but the log. */
function clientDisconnected(): GatewayError {
  return new GatewayError('QUEUE_TIMEOUT', 'The caller left before its turn came; nothing was sent.');
}
