/**
 * Adapts the call rate to the bank's own limits: after 429, or 503 with Retry-After, all instances pause, and after a 429
 * they continue at a lower rate, which then recovers.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { HeaderFields } from '../../pis/headers.ts';
import { retryAfterMs } from '../../pis/retry-after.ts';
import { parseStored } from '../../state/parse-stored.ts';
import type { BucketRate, KeyValues, PubSub } from '../../state/ports.ts';

/** The adaptive rates of all environments. They outlive a reload. */
export interface AdaptiveRates {
  /** Returns the one of an environment, and sets its configured rate. */
  of(environment: string, configured: BucketRate): AdaptiveRate;
  /** Reads the signals of other instances. Never rejects. */
  refresh(): Promise<void>;
}

export interface AdaptiveRate {
  /** The current rate; without bursts while it is reduced. */
  rate(): BucketRate;
  /** Milliseconds until calls may be sent again; 0 = now. */
  pausedMs(): number;
  /** Adapts to a response. @param sentAtMs when its request was sent, on the clock of `now` */
  onResponse(response: ThrottleResponse, sentAtMs: number): void;
  /** Calls the listener whenever a pause begins. @returns removes the listener */
  onPause(listener: () => void): () => void;
  /** Sets the configured rate. */
  configure(rate: BucketRate): void;
  /** Reads the signals of other instances. Never rejects: if the state is unavailable, nothing changes. */
  refresh(): Promise<void>;
}

/** The part of a response that may ask for a pause. */
export interface ThrottleResponse {
  readonly status: number;
  readonly headers: HeaderFields;
}

interface AdaptiveRateDependencies {
  readonly keyValues: KeyValues;
  readonly pubsub: PubSub;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

export function createAdaptiveRates(dependencies: AdaptiveRateDependencies): AdaptiveRates {
  const rates = new Map<string, AdaptiveRate>();
  return {
    of(environment, configured) {
      const rate = rates.get(environment) ?? createAdaptiveRate(environment, configured, dependencies);
      rate.configure(configured);
      rates.set(environment, rate);
      return rate;
    },
    async refresh() {
      await Promise.all(Array.from(rates.values(), (rate) => rate.refresh()));
    },
  };
}

/** A longer Retry-After is cut to this; the bank can ask again. */
const maxPauseMs = 120_000;
/** Pause after a 429 without Retry-After, or with a shorter one. */
const minPauseMs = 1_000;
/** Stored for instances that start later; the rate has recovered by then. */
const storedMs = 600_000;

const throttleSignalSchema = z.object({
  id: z.string(),
  pauseMs: z.number().min(0).max(maxPauseMs),
  /** Milliseconds since 1970, on the clock of the instance that received the response. */
  untilMs: z.number(),
  lowered: z.object({ at: z.number().positive(), repeated: z.boolean() }).nullable(),
});

/** What an instance shares with the others about a throttled call. */
type ThrottleSignal = Readonly<z.output<typeof throttleSignalSchema>>;

/**
 * Instances share the bank's response, not a rate: each computes the rate from the signal and the time since, so that all
 * of them pass the same rate to the token bucket that they share.
 */
export function createAdaptiveRate(
  environment: string,
  rate: BucketRate,
  { keyValues, pubsub, now = () => performance.now(), wall = Date.now }: AdaptiveRateDependencies,
): AdaptiveRate {
  const name = `limit:${environment}`;
  let configured = rate;
  let current: ThrottleSignal | undefined;
  let resumesAtMs = Number.NEGATIVE_INFINITY;
  let listeners: readonly (() => void)[] = [];

  pubsub.subscribe(name, (message) => {
    const signal = parseStored(throttleSignalSchema, message);
    if (signal) adopt(signal, signal.pauseMs);
  });

  function adopt(signal: ThrottleSignal, pauseMs: number): void {
    if (signal.id === current?.id && severityOf(signal) <= severityOf(current)) return;
    current = signal;
    resumesAtMs = Math.max(resumesAtMs, now() + pauseMs);
    for (const listener of listeners) listener();
  }

  function rateAt(ms: number): number {
    const lowered = current?.lowered;
    return lowered ? recoveringRate(lowered, ms - resumesAtMs, configured.perSecond) : configured.perSecond;
  }

  /** @returns `undefined` if the response contains nothing new */
  function signalFrom(status: number, sentAtMs: number): Pick<ThrottleSignal, 'id' | 'lowered'> | undefined {
    const before = current?.lowered ?? null;
    if (!current || sentAtMs >= resumesAtMs) {
      const repeated = sentAtMs - resumesAtMs < repeatWindowMs;
      const lowered = status === 429 ? { at: rateAt(sentAtMs), repeated } : before;
      return { id: randomUUID(), lowered };
    }
    // The request was sent before the pause began.
    if (status !== 429 || before?.repeated) return undefined;
    const lowered = before ? { ...before, repeated: true } : { at: configured.perSecond, repeated: false };
    return { id: current.id, lowered };
  }

  function share(signal: ThrottleSignal): void {
    adopt(signal, signal.pauseMs);
    const text = JSON.stringify(signal);
    // An instance that misses the message refreshes with its next heartbeat, or receives a 429 itself.
    pubsub.publish(name, text).catch(() => {});
    keyValues.write(name, text, storedMs).catch(() => {});
  }

  return {
    rate() {
      const perSecond = rateAt(now());
      return perSecond < configured.perSecond ? { perSecond, burst: 1 } : configured;
    },
    pausedMs: () => Math.max(0, resumesAtMs - now()),
    onResponse({ status, headers }, sentAtMs) {
      if (status !== 429 && status !== 503) return;
      const requestedMs = retryAfterMs(headers, wall());
      if (status === 503 && requestedMs === undefined) return;
      const signal = signalFrom(status, sentAtMs);
      if (!signal) return;
      const pauseMs = Math.min(maxPauseMs, Math.max(minPauseMs, requestedMs ?? 0));
      share({ ...signal, pauseMs, untilMs: wall() + pauseMs });
    },
    async refresh() {
      const text = await keyValues.read(name).catch(() => undefined);
      const signal = text === undefined ? undefined : parseStored(throttleSignalSchema, text);
      if (!signal || signal.untilMs <= (current?.untilMs ?? 0)) return;
      adopt(signal, Math.min(signal.pauseMs, signal.untilMs - wall())); // negative after the pause: the rate has recovered since
    },
    onPause(listener) {
      listeners = [...listeners, listener];
      return () => {
        listeners = listeners.filter((other) => other !== listener);
      };
    },
    configure(next) {
      configured = next;
    },
  };
}

/** Of two signals with the same id, the more severe one is the later one. */
const severityOf = ({ lowered }: ThrottleSignal): number => (lowered ? 1 + Number(lowered.repeated) : 0);

interface RateReduction {
  /** Calls per second when the bank answered 429. */
  readonly at: number;
  /** Whether several calls received 429, or another one soon after the pause. */
  readonly repeated: boolean;
}

/** A 429 this soon after the last pause counts as repeated: the rate is still far too high. */
const repeatWindowMs = 10_000;

/** Parts of the rate that was too high. A single 429 lowers it less: it may have been a brief problem of the bank. */
const reductions = {
  repeated: { base: 0.5, plateau: 0.75 },
  once: { base: 0.8, plateau: 0.9 },
} as const;

/** Duration of the rise from the base to the plateau. */
const approachMs = 5_000;
/** Time after which the rate has grown by a tenth. The growth is cubic: ten times as much takes about twice the time. */
const growthMs = 25_000;
/** The growth starts from at least this part of the configured rate: the rate recovers within three minutes from any depth. */
const minGrowthShare = 1 / 30;
/** One call in ten seconds, so that a bank that always answers 429 is still called. */
const minPerSecond = 0.1;

/**
 * The rate some time after the pause that followed a 429.
 *
 * The rate starts at a base, rises to a plateau below the rate that was too high, stays near it, and then grows faster and
 * faster, like CUBIC (RFC 9438 section 4.1). Near the bank's limit this costs about one 429 every half minute, and a bank
 * that has recovered is called at the full rate within two minutes.
 *
 *     t < approach:  base + (plateau - base) * t / approach
 *     then:          plateau + 0.1 * max(plateau, configured / 30) * ((t - approach) / growth)^3
 *
 * The rate never falls below one call in ten seconds; the pauses that the bank asks for apply in addition.
 *
 * @param sinceMs    milliseconds since the end of the pause; up to then the rate is the base
 * @param configured upper limit, in calls per second
 * @returns calls per second
 */
export function recoveringRate({ at, repeated }: RateReduction, sinceMs: number, configured: number): number {
  const reduction = repeated ? reductions.repeated : reductions.once;
  const [base, plateau] = [at * reduction.base, at * reduction.plateau];
  const limit = (perSecond: number) => Math.min(Math.max(perSecond, minPerSecond), configured);
  if (sinceMs <= 0) return limit(base);
  if (sinceMs < approachMs) return limit(base + ((plateau - base) * sinceMs) / approachMs);
  const growth = ((sinceMs - approachMs) / growthMs) ** 3;
  return limit(plateau + 0.1 * Math.max(plateau, configured * minGrowthShare) * growth);
}
