/**
 * Adapts to the bank's own limits. After 429, or 503 with Retry-After, calls that the limit may concern pause (bank-pauses.ts). After
 * 429s to several payments or products, all calls continue at a lower rate, which then recovers.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { HeaderFields } from '../../pis/headers.ts';
import { lanes } from '../../pis/operations.ts';
import { retryAfterMs } from '../../pis/retry-after.ts';
import { parseStored } from '../../state/parse-stored.ts';
import type { BucketRate, KeyValues, PubSub } from '../../state/ports.ts';
import { createBankPauses, evidenceMs, type Pause, paymentKeyOf, type ScopedCall } from './bank-pauses.ts';

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
  /** The longest pause that concerns a call; `undefined` if it may be sent now. */
  pauseOf(call: ScopedCall): Pause | undefined;
  /** All pauses, those of the widest scopes first. */
  pauses(): readonly Pause[];
  /** Adapts to a response. @param sentAtMs when its request was sent, on the clock of `now` */
  onResponse(call: ScopedCall, response: ThrottleResponse, sentAtMs: number): void;
  /** Calls the listener after each refusal by the bank, and after pauses of other instances were read. @returns removes the listener */
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

const callSchema = z.object({
  lane: z.enum(lanes),
  tenant: z.string(),
  product: z.string().optional(),
  paymentKey: z.string().optional(),
});

const loweringSchema = z.object({
  id: z.string(),
  /** Milliseconds since 1970, on the clock of the instance that received the response: the rate recovers from then on. */
  untilMs: z.number(),
  pauseMs: z.number().min(0).max(maxPauseMs),
  at: z.number().positive(),
  repeated: z.boolean(),
});

type SharedCall = z.output<typeof callSchema>;

/** The 429 that lowered the rate. */
type Lowering = Readonly<z.output<typeof loweringSchema>>;

const refusalSchema = z.object({
  /** The instance that sent the call. */
  from: z.string(),
  refused: callSchema,
  pauseMs: z.number().min(0).max(maxPauseMs),
  /** Whether it was a 429. */
  isLimit: z.boolean(),
  lowering: loweringSchema.optional(),
});
type Refusal = z.output<typeof refusalSchema>;

/** What an instance tells the others. */
const signalSchema = z.union([refusalSchema, z.object({ from: z.string(), answered: callSchema })]);
type Signal = z.output<typeof signalSchema>;

/** What instances that start later read. */
const storedSchema = z.object({
  lowering: loweringSchema.optional(),
  pauses: z.array(callSchema.omit({ paymentKey: true }).partial().extend({ untilMs: z.number() })),
});

/**
 * Instances share the bank's responses, not pauses or a rate: each computes them from the same responses, so that all of them
 * pass the same rate to the token bucket that they share.
 */
export function createAdaptiveRate(
  environment: string,
  rate: BucketRate,
  { keyValues, pubsub, now = () => performance.now(), wall = Date.now }: AdaptiveRateDependencies,
): AdaptiveRate {
  const name = `limit:${environment}`;
  const self = randomUUID();
  let configured = rate;
  let lowering: Lowering | undefined;
  /** From when on the rate recovers. */
  let recoversAtMs = Number.NEGATIVE_INFINITY;
  let listeners: readonly (() => void)[] = [];
  /** The payments or products, at most two, that last got a 429. */
  let limited: readonly { readonly key: string; readonly atMs: number }[] = [];
  const pauses = createBankPauses(now);

  pubsub.subscribe(name, (message) => {
    const signal = parseStored(signalSchema, message);
    if (!signal || signal.from === self) return;
    if ('answered' in signal) pauses.onAnswered(signal.answered);
    else onRefused(signal, true);
  });

  /** @returns whether instances that start later must know it */
  function onRefused({ refused, pauseMs, isLimit, lowering }: Refusal, isRemote: boolean): boolean {
    const isWide = pauses.onRefused(refused, pauseMs, isRemote);
    if (isLimit) noteLimited(refused);
    if (lowering) adopt(lowering, pauseMs);
    notifyListeners();
    return isWide || lowering !== undefined;
  }

  function notifyListeners(): void {
    for (const listener of listeners) listener();
  }

  function noteLimited(call: SharedCall): void {
    const key = limitKeyOf(call);
    limited = [{ key, atMs: now() }, ...limited.filter((one) => one.key !== key)].slice(0, 2);
  }

  /** Whether another payment or product had a 429 shortly before: one alone may have a limit of its own. */
  function isWidespread(call: SharedCall): boolean {
    const key = limitKeyOf(call);
    return limited.some((one) => one.key !== key && now() - one.atMs < evidenceMs);
  }

  function adopt(next: Lowering, pauseMs: number): void {
    if (next.id === lowering?.id && Number(next.repeated) <= Number(lowering.repeated)) return;
    lowering = next;
    recoversAtMs = Math.max(recoversAtMs, now() + pauseMs);
  }

  function rateAt(ms: number): number {
    return lowering
      ? recoveringRate(lowering, ms - recoversAtMs, configured.perSecond)
      : configured.perSecond;
  }

  /** @returns `undefined` if the response contains nothing new about the rate */
  function loweringFrom(sentAtMs: number): Pick<Lowering, 'id' | 'at' | 'repeated'> | undefined {
    if (!lowering || sentAtMs >= recoversAtMs)
      return { id: randomUUID(), at: rateAt(sentAtMs), repeated: sentAtMs - recoversAtMs < repeatWindowMs };
    return lowering.repeated ? undefined : { ...lowering, repeated: true }; // sent before the rate recovers
  }

  /** An instance that misses the message refreshes with its next heartbeat, or receives a refusal itself. */
  function publish(signal: Signal): void {
    pubsub.publish(name, JSON.stringify(signal)).catch(() => {});
  }

  function store(): void {
    const wide = pauses
      .all()
      .filter(({ scope }) => scope !== 'payment')
      .map(({ lane, tenant, product, pausedMs }) => ({ lane, tenant, product, untilMs: wall() + pausedMs }));
    const stored: z.output<typeof storedSchema> = { pauses: wide, ...(lowering && { lowering }) };
    keyValues.write(name, JSON.stringify(stored), storedMs).catch(() => {});
  }

  return {
    rate() {
      const perSecond = rateAt(now());
      return perSecond < configured.perSecond ? { perSecond, burst: 1 } : configured;
    },
    pauseOf: pauses.of,
    pauses: pauses.all,
    onResponse(call, { status, headers }, sentAtMs) {
      const requestedMs = status === 429 || status === 503 ? retryAfterMs(headers, wall()) : undefined;
      const isLimit = status === 429;
      if (!isLimit && requestedMs === undefined) {
        if (status < 500 && pauses.onAnswered(call)) publish({ from: self, answered: sharedCall(call) });
        return;
      }
      const pauseMs = Math.min(maxPauseMs, Math.max(minPauseMs, requestedMs ?? 0));
      const refused = sharedCall(call);
      const lowered = isLimit && isWidespread(refused) ? loweringFrom(sentAtMs) : undefined;
      const lowering = lowered && { ...lowered, pauseMs, untilMs: wall() + pauseMs };
      const refusal: Refusal = { from: self, refused, pauseMs, isLimit, ...(lowering && { lowering }) };
      const mustBeStored = onRefused(refusal, false);
      publish(refusal);
      if (mustBeStored) store();
    },
    async refresh() {
      const text = await keyValues.read(name).catch(() => undefined);
      const stored = text === undefined ? undefined : parseStored(storedSchema, text);
      if (!stored) return;
      for (const { untilMs, ...scope } of stored.pauses) {
        const pauseMs = Math.min(maxPauseMs, untilMs - wall());
        if (pauseMs > 0) pauses.pause(scope, pauseMs);
      }
      notifyListeners();
      if (stored.lowering && stored.lowering.untilMs > (lowering?.untilMs ?? 0))
        adopt(stored.lowering, Math.min(stored.lowering.pauseMs, stored.lowering.untilMs - wall())); // negative after the pause: the rate has recovered since
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

/** A call as other instances learn of it. */
const sharedCall = ({ lane, tenant, product, payment }: ScopedCall): SharedCall => ({
  lane,
  tenant,
  ...(product !== undefined && { product }),
  ...(payment !== undefined && { paymentKey: paymentKeyOf(payment) }),
});

/** A payment, or the product of an initiation, regardless of the lane. */
const limitKeyOf = ({ tenant, product, paymentKey }: SharedCall) =>
  JSON.stringify([tenant, product, paymentKey]);
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
