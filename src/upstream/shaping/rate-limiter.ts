/**
 * Limits the calls to one environment of the bank: the rate with permits from a token bucket (permits.ts), the concurrency
 * of this instance with slots (concurrency-slots.ts).
 *
 * Permits belong to the instance, not to the single call: the first call of the queue uses the next permit. So a payment
 * overtakes all waiting reads, even if it arrives after the permit was requested.
 */

import type { ShapingSettings } from '../../config/schema.ts';
import type { HeaderField } from '../../pis/headers.ts';
import { type Lane, lanes } from '../../pis/operations.ts';
import { GatewayError, retryLater } from '../../request/errors.ts';
import type { DisconnectSignal, RequestedPermit } from '../../request/messages.ts';
import type { BucketRate } from '../../state/ports.ts';
import type { AdaptiveRate, ThrottleResponse } from './adaptive-rate.ts';
import type { Pause, ScopedCall } from './bank-pauses.ts';
import { createConcurrencySlots } from './concurrency-slots.ts';
import { createFairQueue, type Queueable, type QueueKey } from './fair-queue.ts';
import type { PermitRates, Permits } from './permits.ts';

export interface RateLimiter {
  /**
   * Waits for a permit and a concurrency slot, sends, and adapts the rate to the response.
   *
   * @param send must not throw synchronously
   * @throws GatewayError QUEUE_FULL or QUEUE_TIMEOUT if nothing was sent; and whatever `send` throws
   */
  run<Response extends ThrottleResponse>(call: LimitedCall, send: () => Promise<Response>): Promise<Response>;
  /**
   * Requests the permit of a call before it is ready to be sent, if the call would then be admitted at once.
   *
   * @returns `undefined` if nothing was requested
   */
  prefetch(call: QueueKey): RequestedPermit | undefined;
  stats(): RateLimiterStats;
  /** Stops listening for pauses, for a reload. Queued calls then notice a pause with the next permit. */
  close(): void;
}

/** A call that needs a permit. */
export interface LimitedCall extends ScopedCall {
  /** When the whole call must be complete: milliseconds on the clock of the rate limiter. */
  readonly deadlineAtMs: number;
  /** Aborted when the TPP disconnects. Has no effect once the call is admitted. */
  readonly signal?: DisconnectSignal | undefined;
  /** The permit that `prefetch` has requested for it. */
  readonly permit?: RequestedPermit | undefined;
}

export interface RateLimiterStats {
  readonly waiting: Readonly<Record<Lane, number>>;
  /** Calls that were sent and have not ended. */
  readonly running: number;
  /** The tenants that hold all slots that one tenant may hold; their further calls wait. */
  readonly tenantsAtLimit: readonly string[];
  /** Calls per second of all instances together. */
  readonly perSecond: number;
  /** The pauses that the bank has asked for, those of the widest scopes first; without those of single payments. */
  readonly pauses: readonly Pause[];
  /** For how many single payments it has asked for a pause; and the longest of all pauses, in milliseconds. */
  readonly pausedPayments: number;
  readonly longestPauseMs: number;
  /** Writes that have had no answer for at least 8 s, while the bank has answered no other one either; 0 if it has. */
  readonly silentWrites: number;
}

interface RateLimiterDependencies {
  readonly permits: Permits;
  readonly adaptiveRate: AdaptiveRate;
  /** Whether several tenants may call the environment. */
  readonly isShared?: boolean;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

interface QueuedCall extends Queueable, ScopedCall {
  /** When its wait must end. */
  readonly untilMs: number;
  readonly admit: () => void;
  readonly refuse: (why: Error) => void;
}

/** Every call may wait for this long: even an available permit may take a request to the state. */
const minQueueMs = 50;

/** A bank that answers no write for so long is silent: TPPs do not wait much longer. Milliseconds. */
const silentMs = 8_000;

export function createRateLimiter(
  settings: ShapingSettings,
  { permits, adaptiveRate, isShared = false, now = () => performance.now() }: RateLimiterDependencies,
): RateLimiter {
  const { maxWait } = settings;
  const slots = createConcurrencySlots(settings, isShared);
  const queue = createFairQueue<QueuedCall>(settings.queue);
  const ratesOf = createPermitRates(settings);
  /** Calls that wait for the end of a pause, in the order of their arrival. They do not hold up the others. */
  const paused = new Set<QueuedCall>();
  /** When the writes without an answer were sent, and when the last answer to one came. */
  const writesSentAtMs = new Set<{ readonly atMs: number }>();
  let writeAnsweredAtMs = Number.NEGATIVE_INFINITY;
  const proceedTimer = createTimer(proceed, now);
  const resumeTimer = createTimer(resume, now);
  const timeoutTimer = createTimer(refuseLateCalls, now);
  const close = adaptiveRate.onPause(() => {
    for (const call of queue.all()) {
      const pause = adaptiveRate.pauseOf(call);
      if (pause && queue.remove(call)) wait(call, pause);
    }
  });

  /** Admits a call without waiting, if nothing prevents that. */
  function tryAdmit(call: LimitedCall): boolean {
    const { lane, tenant, deadlineAtMs, signal, permit } = call;
    if (queue.size() > 0 || signal?.aborted || deadlineAtMs <= now()) return false;
    if (adaptiveRate.pauseOf(call) || slots.free(lane, tenant) <= 0) return false;
    const isPermitted =
      permit?.take() || permits.take(ratesOf(adaptiveRate.rate()), lane === 'write', 1, proceed) === 0;
    if (!isPermitted) return false;
    slots.take(tenant);
    return true;
  }

  function waitForAdmission(limited: LimitedCall): Promise<void> {
    const { lane, tenant, product, payment, deadlineAtMs, signal, permit } = limited;
    permit?.release(); // it goes to the first call of the queue
    const untilMs = Math.min(now() + Math.max(minQueueMs, maxWait[lane]), deadlineAtMs);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const disconnect = () => refuse(call, clientDisconnected());
    const call: QueuedCall = {
      lane,
      tenant,
      product,
      payment,
      untilMs,
      admit() {
        signal?.removeEventListener('abort', disconnect);
        resolve();
      },
      refuse(why) {
        signal?.removeEventListener('abort', disconnect);
        reject(why);
      },
    };
    if (signal?.aborted) reject(clientDisconnected());
    else {
      signal?.addEventListener('abort', disconnect, { once: true });
      timeoutTimer.startAt(untilMs);
      enqueue(call);
    }
    return promise;
  }

  function enqueue(call: QueuedCall): void {
    const pause = adaptiveRate.pauseOf(call);
    if (pause) {
      wait(call, pause);
      return;
    }
    const dropped = queue.enqueue(call);
    dropped?.refuse(queueFull(isOfTenant(dropped)));
    proceed();
  }

  /** Waits for the end of a pause. A status read never does: a stale status can be served immediately. */
  function wait(call: QueuedCall, pause: Pause): void {
    const resumesAtMs = now() + pause.pausedMs;
    if (call.lane === 'status' || call.untilMs <= resumesAtMs) call.refuse(pausedByBank(pause, isShared));
    else if (paused.size >= settings.queue) call.refuse(queueFull(false));
    else {
      paused.add(call);
      resumeTimer.startAt(resumesAtMs);
    }
  }

  function resume(): void {
    const waiting = [...paused];
    paused.clear();
    for (const call of waiting) enqueue(call);
  }

  /** Admits calls while there are permits. Takes them only for calls that have a free slot. */
  function proceed(): void {
    for (;;) {
      const lane = lanes.find((lane) => queue.servable(lane, slots) > 0);
      if (!lane) return;
      const isPayment = lane === 'write';
      const rates = ratesOf(adaptiveRate.rate());
      const waitMs = permits.take(rates, isPayment, servable(lane), proceed);
      if (waitMs === 0) {
        admitNext();
      } else if (waitMs <= rates.maxWaitMs) {
        proceedTimer.startAt(now() + waitMs);
        return;
      } else if (waitMs < Number.POSITIVE_INFINITY) {
        refuseAll((call) => (call.lane === 'write') === isPayment);
      } else {
        return;
      }
    }
  }

  /** How many calls could use a permit that this lane requests. */
  function servable(lane: Lane): number {
    if (lane === 'write') return queue.servable('write', slots);
    const others = queue.servable('read', slots) + queue.servable('status', slots);
    return Math.min(others, slots.free('read'));
  }

  function admitNext(): void {
    let call = queue.dequeue(slots);
    for (; call && call.untilMs < now(); call = queue.dequeue(slots))
      call.refuse(queueTimeout(isOfTenant(call)));
    if (!call) return;
    const pause = adaptiveRate.pauseOf(call); // this limiter may be closed, and was not told of the pause
    if (pause) {
      wait(call, pause);
      return;
    }
    slots.take(call.tenant);
    call.admit();
  }

  function refuseLateCalls(): void {
    const nowMs = now();
    for (const call of [...queue.all(), ...paused]) {
      if (call.untilMs > nowMs) timeoutTimer.startAt(call.untilMs);
      else refuse(call, isAtLimit(call.tenant) ? tenantAtLimit() : queueTimeout(isOfTenant(call)));
    }
  }

  /** Whether most of the calls that wait are those of one of several tenants: tenants take turns, so the others do not wait for them. */
  const isOfTenant = ({ lane, tenant }: QueueKey) =>
    isShared && 2 * queue.size(lane, tenant) > queue.size(lane) + 1;

  /** Whether the tenant holds its whole share while there are free slots. */
  const isAtLimit = (tenant: string) => slots.free('write') > 0 && slots.free('write', tenant) <= 0;

  function refuseAll(isAffected: (call: QueuedCall) => boolean): void {
    const affected = queue
      .all()
      .filter(isAffected)
      .map((call) => ({ call, error: queueTimeout(isOfTenant(call)) }));
    for (const { call, error } of affected) refuse(call, error);
  }

  function refuse(call: QueuedCall, error: GatewayError): void {
    if (paused.delete(call) || queue.remove(call)) call.refuse(error);
  }

  /** Sends an admitted call. */
  function start<Response extends ThrottleResponse>(
    call: LimitedCall,
    send: () => Promise<Response>,
  ): Promise<Response> {
    const { lane, tenant } = call;
    const sentAtMs = now();
    const sent = { atMs: sentAtMs };
    if (lane === 'write') writesSentAtMs.add(sent);
    const release = () => {
      writesSentAtMs.delete(sent);
      slots.release(tenant);
      if (queue.size() > 0) proceed();
    };
    return send().then(
      (response) => {
        if (lane === 'write') writeAnsweredAtMs = now();
        try {
          adaptiveRate.onResponse(call, response, sentAtMs);
        } finally {
          release();
        }
        return response;
      },
      (thrown) => {
        release();
        throw thrown;
      },
    );
  }

  function prefetch({ lane, tenant }: QueueKey): RequestedPermit | undefined {
    if (queue.size() > 0 || adaptiveRate.pauseOf({ lane, tenant }) || slots.free(lane, tenant) <= 0)
      return undefined;
    const rates = ratesOf(adaptiveRate.rate());
    const hasReserve = rates.others.burst < rates.payments.burst;
    // The cache may answer a status read. Without a reserve, a payment could lack the permit until it is given back.
    if (lane === 'status' && !hasReserve) return undefined;
    return permits.prefetch?.(rates, lane === 'write');
  }

  function silentWrites(): number {
    const beforeMs = now() - silentMs;
    if (writeAnsweredAtMs > beforeMs) return 0;
    return [...writesSentAtMs].filter(({ atMs }) => atMs <= beforeMs).length;
  }

  const waitingIn = (lane: Lane) =>
    queue.size(lane) + [...paused].filter((call) => call.lane === lane).length;

  return {
    run: (call, send) =>
      tryAdmit(call) ? start(call, send) : waitForAdmission(call).then(() => start(call, send)),
    prefetch,
    stats() {
      const pauses = adaptiveRate.pauses();
      const wide = pauses.filter(({ scope }) => scope !== 'payment');
      return {
        waiting: { write: waitingIn('write'), read: waitingIn('read'), status: waitingIn('status') },
        running: slots.running(),
        tenantsAtLimit: slots.tenantsAtLimit(),
        perSecond: adaptiveRate.rate().perSecond,
        pauses: wide,
        pausedPayments: pauses.length - wide.length,
        longestPauseMs: Math.max(0, ...pauses.map(({ pausedMs }) => pausedMs)),
        silentWrites: silentWrites(),
      };
    },
    close,
  };
}

/** One timer for many times: it fires at the earliest. It stays set if nothing waits for it any more. */
function createTimer(onTime: () => void, now: () => number): { startAt(atMs: number): void } {
  let firesAtMs = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const fire = () => {
    firesAtMs = Number.POSITIVE_INFINITY;
    onTime();
  };
  return {
    startAt(atMs) {
      if (atMs >= firesAtMs) return;
      clearTimeout(timer);
      firesAtMs = atMs;
      timer = setTimeout(fire, Math.max(0, Math.ceil(atMs - now())));
      timer.unref();
    },
  };
}

/**
 * The token bucket as payments and as other calls use it. Half of the burst is reserved for payments, so that a burst of
 * reads does not make them wait.
 */
function createPermitRates({ rate, burst, maxWait }: ShapingSettings): (current: BucketRate) => PermitRates {
  const maxWaitMs = Math.max(...Object.values(maxWait));
  /** Computed from the configured rate: reservations that were made before the rate was reduced are still valid. */
  const longestAheadMs = maxWaitMs + (burst * 1_000) / rate;
  let of: BucketRate | undefined;
  let rates: PermitRates | undefined;
  return (current) => {
    if (rates && current === of) return rates;
    const payments = { ...current, longestAheadMs };
    of = current;
    rates = {
      payments,
      others: { ...payments, burst: current.burst - Math.floor(current.burst / 2) },
      maxWaitMs,
    };
    return rates;
  };
}

function queueFull(isOfTenant: boolean): GatewayError {
  return new GatewayError(
    'QUEUE_FULL',
    'The queue for calls to the bank is full; nothing was sent. Try again.',
    { isOfTenant },
  );
}

function queueTimeout(isOfTenant: boolean): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The request waited too long in the queue for calls to the bank; nothing was sent. Try again.',
    { isOfTenant },
  );
}

function tenantAtLimit(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The calls in progress use all concurrency slots of this tenant; nothing was sent. Try again.',
    { isOfTenant: true },
  );
}

/** @returns with `RateLimit`, whose policy names what the pause concerns: `bank-payment`, `bank-product` and so on */
function pausedByBank({ scope, pausedMs }: Pause, isShared: boolean): GatewayError {
  const rateLimit: HeaderField = ['RateLimit', `"bank-${scope}";r=0;t=${Math.ceil(pausedMs / 1_000)}`];
  return retryLater(pausedMs, 'QUEUE_TIMEOUT', `The bank has asked for a pause${concerning[scope]}`, {
    headers: [rateLimit],
    isOfTenant: isShared && scope === 'tenant',
  });
}

const concerning = {
  environment: '',
  lane: ' of such calls',
  tenant: ' of your calls of this kind',
  product: ' of your calls for this payment product',
  payment: ' of calls for this payment',
} as const satisfies Readonly<Record<Pause['scope'], string>>;

/** Only the log shows this error. */
function clientDisconnected(): GatewayError {
  return new GatewayError(
    'QUEUE_TIMEOUT',
    'The client disconnected while the request was queued; nothing was sent.',
  );
}
