/**
 * Limits the calls to one environment of the bank: the rate with permits from a token bucket that all instances share, the
 * concurrency of this instance with slots (concurrency-slots.ts).
 *
 * The instance reserves permits, not the single call: the first call of the queue uses the next permit. So a payment
 * overtakes all waiting reads, even if it arrives after the permit was reserved.
 */

import type { ShapingSettings } from '../../config/schema.ts';
import type { Lane } from '../../pis/operations.ts';
import { GatewayError, retryLater } from '../../request/errors.ts';
import { createLinkedList } from '../../request/linked-list.ts';
import type { BucketRate, TokenBuckets } from '../../state/ports.ts';
import type { AdaptiveRate, ThrottleResponse } from './adaptive-rate.ts';
import { createConcurrencySlots } from './concurrency-slots.ts';
import { createFairQueue } from './fair-queue.ts';
import { createPermitPrefetch } from './permits.ts';
import { createQueuedCall, type LimitedCall, type QueuedCall } from './queued-call.ts';

export interface RateLimiter {
  /**
   * Waits for a permit and a concurrency slot, sends, and adapts the rate to the response.
   *
   * @throws GatewayError QUEUE_FULL or QUEUE_TIMEOUT if nothing was sent; and whatever `send` throws
   */
  run<Response extends ThrottleResponse>(call: LimitedCall, send: () => Promise<Response>): Promise<Response>;
  stats(): RateLimiterStats;
  /** Stops listening for pauses, for a reload. Queued calls then notice a pause with the next permit. */
  close(): void;
}

export interface RateLimiterStats {
  readonly waiting: Readonly<Record<Lane, number>>;
  /** Calls that were sent and have not ended. */
  readonly running: number;
  /** The tenants that hold all slots that one tenant may hold; their further calls wait. */
  readonly tenantsAtLimit: readonly string[];
  /** Calls per second of all instances together. */
  readonly perSecond: number;
  /** Milliseconds for which the bank has asked for a pause; 0 = none. */
  readonly pausedMs: number;
}

interface RateLimiterDependencies {
  /** Never rejects: falls back to a share of the rate while the state is unavailable. */
  readonly permits: Pick<TokenBuckets, 'reserve'>;
  readonly adaptiveRate: AdaptiveRate;
  /** Whether several tenants may call the environment. */
  readonly isShared?: boolean;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** Every call may wait for this long: even an available permit takes a request to the state. */
const minQueueMs = 50;

export function createRateLimiter(
  environment: string,
  settings: ShapingSettings,
  { permits, adaptiveRate, isShared = false, now = () => performance.now() }: RateLimiterDependencies,
): RateLimiter {
  const { maxWait } = settings;
  const slots = createConcurrencySlots(settings, isShared);
  const queue = createFairQueue<QueuedCall>(settings.queue);
  /** The queued calls without a timer, by arrival. */
  const timerStarts = createLinkedList<{ readonly queuedAtMs: number; readonly start: () => void }>();
  let resumeTimer: NodeJS.Timeout | undefined;

  const maxWaitMs = Math.max(...Object.values(maxWait));
  /** Of the configured rate: reservations from before a throttling of the rate are still valid. */
  const longestAheadMs = maxWaitMs + (settings.burst * 1_000) / settings.rate;
  const prefetchFor = (isServed: (call: QueuedCall) => boolean, rate: () => BucketRate) =>
    createPermitPrefetch({
      reserve: (acceptedMs) =>
        permits.reserve(`bucket:${environment}`, { ...rate(), longestAheadMs }, acceptedMs),
      maxWaitMs,
      onPermit: admitNext,
      onOutOfReach: () => refuseAll(isServed, queueTimeout),
      onProgress: proceed,
    });
  const paymentPermits = prefetchFor(isPayment, adaptiveRate.rate);
  const otherPermits = prefetchFor(
    (call) => !isPayment(call),
    () => withPaymentReserve(adaptiveRate.rate()),
  );
  const close = adaptiveRate.onPause(() => {
    refuseAll(isPauseTooLong, () => pausedByBank(adaptiveRate.pausedMs()));
    proceed();
  });

  /** Returns when the call has a permit and a slot. */
  async function waitForAdmission(call: LimitedCall): Promise<void> {
    if (call.signal?.aborted) throw clientDisconnected();
    const queuedAtMs = now();
    const untilMs = Math.min(queuedAtMs + Math.max(minQueueMs, maxWait[call.lane]), call.deadlineAtMs);
    if (isPauseTooLong({ lane: call.lane, untilMs })) throw pausedByBank(adaptiveRate.pausedMs());
    const { queuedCall, admitted } = createQueuedCall(call, untilMs, {
      onTimeout: (late) => refuse(late, isAtLimit(late.tenant) ? tenantAtLimit() : queueTimeout()),
      onDisconnect: (disconnected) => refuse(disconnected, clientDisconnected()),
    });
    const dropped = queue.enqueue(queuedCall);
    dropped?.refuse(queueFull());
    const startTimer = () => queuedCall.startTimer(untilMs - now());
    if (slots.free(call.lane, call.tenant) <= 0) {
      startTimer(); // no permit is requested for this call now
      return admitted;
    }
    const start = () => {
      unlink();
      startTimer();
    };
    const unlink = timerStarts.append({ queuedAtMs, start });
    proceed();
    return admitted.finally(unlink);
  }

  /** Whether the tenant holds its whole share while there are free slots. */
  const isAtLimit = (tenant: string) => slots.free('write') > 0 && slots.free('write', tenant) <= 0;

  /** A status read never waits for the end of a pause: a stale status can be served immediately. */
  const isPauseTooLong = ({ lane, untilMs }: Pick<QueuedCall, 'lane' | 'untilMs'>) =>
    adaptiveRate.pausedMs() > 0 && (lane === 'status' || untilMs <= now() + adaptiveRate.pausedMs());

  function proceed(): void {
    if (queue.size() === 0) return;
    const pausedMs = adaptiveRate.pausedMs();
    if (pausedMs > 0) resumeIn(pausedMs);
    else requestPermits();
    const isRequesting = paymentPermits.isRequesting() || otherPermits.isRequesting();
    startTimers(isRequesting ? now() - minQueueMs : Infinity); // the newest calls may be admitted immediately
  }

  function startTimers(queuedUntilMs: number): void {
    for (let next = timerStarts.first(); next && next.queuedAtMs <= queuedUntilMs; next = timerStarts.first())
      next.start();
  }

  /**
   * Requests permits only for calls that have a free slot: a permit that no call can use is lost. Payments come first: reads
   * get permits only for the slots that pending payments leave.
   */
  function requestPermits(): void {
    paymentPermits.request(queue.servable('write', slots));
    const others = queue.servable('read', slots) + queue.servable('status', slots);
    otherPermits.request(Math.min(others, slots.free('read') - paymentPermits.pendingCount()));
  }

  function resumeIn(ms: number): void {
    clearTimeout(resumeTimer);
    resumeTimer = setTimeout(proceed, Math.ceil(ms));
  }

  /** Refuses calls that are late or whose TPP has disconnected: those without a timer were not noticed before. */
  function admitNext(): void {
    if (adaptiveRate.pausedMs() > 0) return;
    let first = queue.dequeue(slots);
    for (; first && (first.isDisconnected() || first.untilMs < now()); first = queue.dequeue(slots))
      first.refuse(first.isDisconnected() ? clientDisconnected() : queueTimeout());
    if (!first) return;
    slots.take(first.tenant);
    first.admit();
  }

  function refuseAll(isAffected: (call: QueuedCall) => boolean, error: () => GatewayError): void {
    for (const call of queue.all().filter(isAffected)) refuse(call, error());
  }

  function refuse(call: QueuedCall, error: GatewayError): void {
    if (queue.remove(call)) call.refuse(error);
  }

  return {
    async run(call, send) {
      await waitForAdmission(call);
      const sentAtMs = now();
      try {
        const response = await send();
        adaptiveRate.onResponse(response, sentAtMs);
        return response;
      } finally {
        slots.release(call.tenant);
        proceed();
      }
    },
    stats: () => ({
      waiting: { write: queue.size('write'), read: queue.size('read'), status: queue.size('status') },
      running: slots.running(),
      tenantsAtLimit: slots.tenantsAtLimit(),
      perSecond: adaptiveRate.rate().perSecond,
      pausedMs: adaptiveRate.pausedMs(),
    }),
    close,
  };
}

const isPayment = ({ lane }: QueuedCall) => lane === 'write';

/**
 * The token bucket as reads use it: half of the burst is reserved for payments. So neither a burst of reads nor many
 * instances with a reserved permit each make a payment wait, and together they never exceed the bucket.
 */
const withPaymentReserve = ({ perSecond, burst }: BucketRate): BucketRate => ({
  perSecond,
  burst: burst - Math.floor(burst / 2),
});

function queueFull(): GatewayError {
  return new GatewayError(
    'QUEUE_FULL',
    'Too many calls are waiting for the bank; nothing was sent. Try again.',
  );
}

function queueTimeout(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The request waited too long in the queue for the bank; nothing was sent. Try again.',
  );
}

function tenantAtLimit(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The calls in progress hold all concurrency slots that one tenant may hold; nothing was sent. Try again.',
  );
}

const pausedByBank = (pausedMs: number): GatewayError =>
  retryLater(pausedMs, 'QUEUE_TIMEOUT', 'The bank asks for a pause');

/** Only the log shows this error. */
function clientDisconnected(): GatewayError {
  return new GatewayError('QUEUE_TIMEOUT', 'The caller left before its turn came; nothing was sent.');
}
