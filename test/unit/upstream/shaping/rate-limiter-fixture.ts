/** Rate limiters of several instances in front of a simulated bank, on simulated time. */

import type { TestContext } from 'node:test';
import type { ShapingSettings } from '../../../../src/config/schema.ts';
import type { Lane } from '../../../../src/pis/operations.ts';
import { type GatewayError, stateUnavailable } from '../../../../src/request/errors.ts';
import type { RequestedPermit } from '../../../../src/request/messages.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import type { SharedTokenBuckets, State } from '../../../../src/state/ports.ts';
import { createMetrics } from '../../../../src/telemetry/metrics.ts';
import { createAdaptiveRate, type ThrottleResponse } from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { createPermitSources } from '../../../../src/upstream/shaping/permits.ts';
import { createRateLimiter, type RateLimiter } from '../../../../src/upstream/shaping/rate-limiter.ts';
import { createSharedBuckets } from '../../../kit/shared-buckets.ts';
import { type SimulatedTime, simulateTime } from '../../../kit/simulated-time.ts';

/** A call that was sent to the bank. */
export interface SentCall {
  readonly atMs: number;
  readonly lane: Lane;
  readonly tenant: string;
  /** How long it had waited in the queue. */
  readonly waitedMs: number;
  readonly status: number;
}

export interface LimiterFixture {
  readonly time: SimulatedTime;
  readonly state: State;
  readonly limiters: readonly RateLimiter[];
  readonly sent: readonly SentCall[];
  readonly refused: readonly (GatewayError & { readonly lane?: Lane })[];
  /** Sends a call through one of the rate limiters; adds it to `sent` or its error to `refused`. */
  call(over?: CallOptions): Promise<void>;
}

export interface CallOptions {
  readonly lane?: Lane;
  readonly tenant?: string;
  readonly product?: string;
  readonly payment?: string;
  readonly limiter?: number;
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
  /** How long before the call its permit is requested, in milliseconds. */
  readonly prefetchMs?: number;
  /** The call gives up after its permit was requested. */
  readonly givesUp?: boolean;
}

interface LimiterFixtureOptions {
  readonly settings?: Partial<ShapingSettings>;
  readonly instances?: number;
  /** Whether several tenants may call the environment. */
  readonly isShared?: boolean;
  /** The bank. @param atMs when the call arrives */
  readonly bank?: (atMs: number) => ThrottleResponse;
  readonly latencyMs?: number;
  /** The token buckets as each instance accesses them. By default, those of the process if there is one instance. */
  readonly bucketsOf?: (shared: SharedTokenBuckets) => SharedTokenBuckets;
  /** Whether these token buckets have answered everything. */
  readonly isIdle?: () => boolean;
}

export const defaults: ShapingSettings = {
  rate: 50,
  burst: 50,
  maxConcurrent: 100,
  reserve: 0.1,
  queue: 1_000,
  maxWait: { write: 10_000, read: 3_000, status: 1_000 },
  expectedInstances: 1,
};

const okResponse: ThrottleResponse = { status: 200, headers: [] };

export function startLimiters(t: TestContext, options: LimiterFixtureOptions = {}): LimiterFixture {
  const { instances = 1, isShared = false, bank = () => okResponse, latencyMs = 50, bucketsOf } = options;
  const time = simulateTime(t, options.isIdle);
  const { now } = time;
  const state = createMemoryState(now);
  const sent: SentCall[] = [];
  const refused: GatewayError[] = [];
  const settings = { ...defaults, ...options.settings };
  const shared = createSharedBuckets(now);
  const areShared = instances > 1 || bucketsOf !== undefined;
  const limiters = Array.from({ length: instances }, () => {
    const buckets = areShared ? (bucketsOf?.(shared) ?? shared) : state.tokenBuckets;
    const permits = createPermitSources(buckets, {
      instances: () => Math.max(instances, settings.expectedInstances),
      share: () => 1 / settings.expectedInstances,
      telemetry: { log: () => {}, metrics: createMetrics() },
      now,
    }).of('sandbox');
    const rate = { perSecond: settings.rate, burst: settings.burst };
    const adaptiveRate = createAdaptiveRate('sandbox', rate, { ...state, now, wall: now });
    return createRateLimiter(settings, { permits, adaptiveRate, isShared, now });
  });

  async function call(over: CallOptions = {}): Promise<void> {
    const { lane = 'write', tenant = 'tenant', limiter = 0, deadlineMs = 600_000, signal } = over;
    const { product = 'transfers', payment } = over;
    let permit: RequestedPermit | undefined;
    if (over.prefetchMs !== undefined) {
      permit = limiters[limiter]?.prefetch({ lane, tenant });
      await new Promise((resolve) => setTimeout(resolve, over.prefetchMs));
    }
    if (over.givesUp) return permit?.release();
    const sinceMs = now();
    const send = async () => {
      const atMs = now();
      const response = bank(atMs);
      sent.push({ atMs, lane, tenant, waitedMs: atMs - sinceMs, status: response.status });
      if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
      return response;
    };
    await limiters[limiter]
      ?.run({ lane, tenant, product, payment, deadlineAtMs: sinceMs + deadlineMs, signal, permit }, send)
      .catch((error) => void refused.push(Object.assign(error, { lane })));
  }

  return { time, state, limiters, sent, refused, call };
}

/** Token buckets that cannot be reached while `isBroken`, and that count the requests. */
export function failingBuckets() {
  const failing = { isBroken: false, requests: 0 };
  const request = <Result>(send: () => Promise<Result>) => {
    failing.requests += 1;
    return failing.isBroken ? Promise.reject(stateUnavailable()) : send();
  };
  const bucketsOf = (shared: SharedTokenBuckets): SharedTokenBuckets => ({
    isShared: true,
    reserve: (...all) => request(() => shared.reserve(...all)),
    take: (...all) => request(() => shared.take(...all)),
    lease: (...all) => request(() => shared.lease(...all)),
    giveBack: (...all) => request(() => shared.giveBack(...all)),
  });
  return Object.assign(failing, { bucketsOf });
}

/** The most and the fewest calls in any span of this length that begins with a call and ends before the last. */
export function extremesOf(atMs: readonly number[], spanMs: number): { most: number; fewest: number } {
  const counts = atMs
    .filter((start) => start + spanMs <= (atMs.at(-1) ?? 0))
    .map((start) => atMs.filter((at) => at >= start && at < start + spanMs).length);
  return { most: Math.max(...counts), fewest: Math.min(...counts) };
}

/** By how many calls any span of time, of any length, exceeds what the bucket and the rate allow; at most 0 if none does. */
export function worstExcess(atMs: readonly number[], perSecond: number, burst: number): number {
  // The excess of the span from call i to call j is (j - i + 1) - burst - rate * (t_j - t_i): a running minimum is enough.
  let least = Number.POSITIVE_INFINITY;
  let worst = Number.NEGATIVE_INFINITY;
  for (const [index, at] of atMs.entries()) {
    least = Math.min(least, index - (perSecond * at) / 1000);
    worst = Math.max(worst, index + 1 - (perSecond * at) / 1000 - least - burst);
  }
  return worst;
}
