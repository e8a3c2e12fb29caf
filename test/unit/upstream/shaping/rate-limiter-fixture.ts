/** Shapers in front of a bank of a few lines, on a time that the test sets. */

import type { TestContext } from 'node:test';
import type { ShapingSettings } from '../../../../src/config/schema.ts';
import type { Lane } from '../../../../src/pis/operations.ts';
import { type GatewayError, stateUnavailable } from '../../../../src/request/errors.ts';
import { createFallbackLimiter } from '../../../../src/state/fallback-limiter.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import type { State } from '../../../../src/state/ports.ts';
import { createAdaptiveRate, type ThrottleResponse } from '../../../../src/upstream/shaping/adaptive-rate.ts';
import { createRateLimiter, type RateLimiter } from '../../../../src/upstream/shaping/rate-limiter.ts';
import { type SimulatedTime, simulateTime } from '../../../kit/simulated-time.ts';

/** A call that the bank has seen. */
export interface SentCall {
  readonly atMs: number;
  readonly lane: Lane;
  readonly tenant: string;
  /** How long it had waited for its turn. */
  readonly waitedMs: number;
  readonly status: number;
}

export interface LimiterFixture {
  readonly time: SimulatedTime;
  readonly state: State;
  readonly limiters: readonly RateLimiter[];
  readonly sent: readonly SentCall[];
  readonly refused: readonly (GatewayError & { readonly lane?: Lane })[];
  /** Sends a call through one of the shapers; what becomes of it is seen, or refused. */
  call(over?: CallOptions): Promise<void>;
}

interface CallOptions {
  readonly lane?: Lane;
  readonly tenant?: string;
  readonly limiter?: number;
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

interface LimiterFixtureOptions {
  readonly settings?: Partial<ShapingSettings>;
  readonly instances?: number;
  /** How the bank answers. @param atMs when it is asked */
  readonly bank?: (atMs: number) => ThrottleResponse;
  readonly latencyMs?: number;
  /** The way of each instance to the shared state. */
  readonly stateOf?: (shared: State) => State;
}

export const defaults: ShapingSettings = {
  rate: 50,
  burst: 50,
  maxConcurrent: 100,
  queue: 1_000,
  maxWait: { write: 10_000, read: 3_000, status: 1_000 },
  expectedInstances: 1,
};

const okResponse: ThrottleResponse = { status: 200, headers: [] };

export function startLimiters(t: TestContext, options: LimiterFixtureOptions = {}): LimiterFixture {
  const { instances = 1, bank = () => okResponse, latencyMs = 50, stateOf = (shared) => shared } = options;
  const time = simulateTime(t);
  const { now } = time;
  const state = createMemoryState(now);
  const seen: SentCall[] = [];
  const refused: GatewayError[] = [];
  const settings = { ...defaults, ...options.settings };
  const shapers = Array.from({ length: instances }, () => {
    const way = stateOf(state);
    const part = () => 1 / settings.expectedInstances;
    const reservations = createFallbackLimiter(way.tokenBuckets, {
      share: part,
      initialFill: 'empty',
      now,
    });
    const limit = createAdaptiveRate(
      'sandbox',
      { perSecond: settings.rate, burst: settings.burst },
      { ...way, now, wall: now },
    );
    return createRateLimiter('sandbox', settings, { permits: reservations, adaptiveRate: limit, now });
  });

  async function call(over: CallOptions = {}): Promise<void> {
    const { lane = 'write', tenant = 'tenant', limiter = 0, deadlineMs = 600_000, signal } = over;
    const sinceMs = now();
    const ask = async () => {
      const atMs = now();
      const answer = bank(atMs);
      seen.push({ atMs, lane, tenant, waitedMs: atMs - sinceMs, status: answer.status });
      if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
      return answer;
    };
    await shapers[limiter]
      ?.run({ lane, tenant, deadlineAtMs: sinceMs + deadlineMs, signal }, ask)
      .catch((error) => void refused.push(Object.assign(error, { lane })));
  }

  return { time, state, limiters: shapers, sent: seen, refused, call };
}

/** Ways to the state whose reservations fail while a test says so. */
export function failingPermits(): { broken: boolean; readonly stateOf: (shared: State) => State } {
  const breaks = {
    broken: false,
    stateOf: (shared: State): State => ({
      ...shared,
      tokenBuckets: {
        ...shared.tokenBuckets,
        async reserve(...all) {
          if (breaks.broken) throw stateUnavailable();
          return shared.tokenBuckets.reserve(...all);
        },
      },
    }),
  };
  return breaks;
}

/** The most calls that any span of this length holds, and the fewest; spans begin with a call and end before the last. */
export function extremesOf(atMs: readonly number[], spanMs: number): { most: number; fewest: number } {
  const counts = atMs
    .filter((start) => start + spanMs <= (atMs.at(-1) ?? 0))
    .map((start) => atMs.filter((one) => one >= start && one < start + spanMs).length);
  return { most: Math.max(...counts), fewest: Math.min(...counts) };
}

/** By how many calls the worst span of time, however long, exceeds what the bucket and the rate allow; 0 or less is well. */
export function worstExcess(atMs: readonly number[], perSecond: number, burst: number): number {
  // The excess of the span from call i to call j is (j - i + 1) - burst - rate * (t_j - t_i): a running minimum will do.
  let least = Number.POSITIVE_INFINITY;
  let worst = Number.NEGATIVE_INFINITY;
  for (const [index, at] of atMs.entries()) {
    least = Math.min(least, index - (perSecond * at) / 1000);
    worst = Math.max(worst, index + 1 - (perSecond * at) / 1000 - least - burst);
  }
  return worst;
}
