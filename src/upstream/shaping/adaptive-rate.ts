/** What the bank says of its own limits (429, and 503 with Retry-After): all instances pause, and then go slower. */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type HeaderFields, headerValue } from '../../pis/headers.ts';
import type { BucketRate, KeyValues, PubSub } from '../../state/ports.ts';

/** The longest pause that is kept, in milliseconds; a bank that wants more says so again. */
const maxPauseMs = 120_000;
/** The pause after a 429 that does not say how long, or says none. */
const minPauseMs = 1_000;
/** How long what was learnt is kept for new instances; the rate has recovered by then. */
const storedMs = 600_000;

const throttleSignalSchema = z.object({
  id: z.string(),
  pauseMs: z.number().min(0).max(maxPauseMs),
  /** Milliseconds since 1970, by the clock of the instance that was told. */
  untilMs: z.number(),
  lowered: z.object({ at: z.number().positive(), repeated: z.boolean() }).nullable(),
});

/** What instances tell each other. */
type ThrottleSignal = Readonly<z.output<typeof throttleSignalSchema>>;

export interface AdaptiveRate {
  /** The rate at this moment; turns come one by one while it is lowered. */
  rate(): BucketRate;
  /** How long nothing may be sent; 0 = send. Milliseconds. */
  pausedMs(): number;
  /** Learns from an answer. @param sentAtMs when its request was sent, on the clock of `now` */
  onResponse(answer: ThrottleResponse, sentAtMs: number): void;
  /** Calls the listener whenever a pause begins. @returns stops that */
  onPause(listener: () => void): () => void;
  /** Another rate is configured from now on; what was learnt stays. */
  configure(rate: BucketRate): void;
  /** Reads what others were told; a state that is out of reach changes nothing. */
  refresh(): Promise<void>;
}

/** What there is to learn from. */
export interface ThrottleResponse {
  readonly status: number;
  readonly headers: HeaderFields;
}

export interface AdaptiveRateDependencies {
  readonly keyValues: KeyValues;
  readonly pubsub: PubSub;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

/**
 * Nothing is known yet.
 *
 * What is shared is what the bank said, not a rate: each instance computes the rate from it and from the time since,
 * so that all of them pass the same one to the bucket they share, and the sum is right.
 */
export function createAdaptiveRate(
  environment: string,
  rate: BucketRate,
  parts: AdaptiveRateDependencies,
): AdaptiveRate {
  const { keyValues, pubsub, now = () => performance.now(), wall = Date.now } = parts;
  const name = `limit:${environment}`;
  let configured = rate;
  let current: ThrottleSignal | undefined;
  let resumesAtMs = Number.NEGATIVE_INFINITY;
  let listeners: readonly (() => void)[] = [];

  pubsub.subscribe(name, (message) => {
    const lesson = parseSignal(message);
    if (lesson) adopt(lesson, lesson.pauseMs);
  });

  function adopt(lesson: ThrottleSignal, pauseMs: number): void {
    if (lesson.id === current?.id && severityOf(lesson) <= severityOf(current)) return;
    current = lesson;
    resumesAtMs = Math.max(resumesAtMs, now() + pauseMs);
    for (const listener of listeners) listener();
  }

  function rateAt(ms: number): number {
    const lowered = current?.lowered;
    return lowered ? recoveringRate(lowered, ms - resumesAtMs, configured.perSecond) : configured.perSecond;
  }

  /** @returns `undefined` if all of it is known */
  function signalFrom(status: number, sentAtMs: number): Pick<ThrottleSignal, 'id' | 'lowered'> | undefined {
    const before = current?.lowered ?? null;
    if (!current || sentAtMs >= resumesAtMs) {
      const soonAgain = sentAtMs - resumesAtMs < repeatWindowMs;
      const lowered = status === 429 ? { at: rateAt(sentAtMs), repeated: soonAgain } : before;
      return { id: randomUUID(), lowered };
    }
    // It was on its way when the pause began.
    if (status !== 429 || before?.repeated) return undefined;
    const again = before ? { ...before, repeated: true } : { at: configured.perSecond, repeated: false };
    return { id: current.id, lowered: again };
  }

  function heard({ status, headers }: ThrottleResponse, sentAtMs: number): void {
    if (status !== 429 && status !== 503) return;
    const asked = retryAfterMs(headers, wall());
    if (status === 503 && asked === undefined) return;
    const lesson = signalFrom(status, sentAtMs);
    if (!lesson) return;
    const pauseMs = Math.min(maxPauseMs, Math.max(minPauseMs, asked ?? 0));
    share({ ...lesson, pauseMs, untilMs: wall() + pauseMs });
  }

  function share(lesson: ThrottleSignal): void {
    adopt(lesson, lesson.pauseMs);
    const text = JSON.stringify(lesson);
    // Whoever cannot be reached is told by the bank itself, or reads it with the next heartbeat.
    pubsub.publish(name, text).catch(() => {});
    keyValues.write(name, text, storedMs).catch(() => {});
  }

  return {
    rate() {
      const perSecond = rateAt(now());
      return perSecond < configured.perSecond ? { perSecond, burst: 1 } : configured;
    },
    pausedMs: () => Math.max(0, resumesAtMs - now()),
    onResponse: heard,
    async refresh() {
      const text = await keyValues.read(name).catch(() => undefined);
      const lesson = text === undefined ? undefined : parseSignal(text);
      if (!lesson || lesson.untilMs <= (current?.untilMs ?? 0)) return;
      adopt(lesson, Math.min(lesson.pauseMs, lesson.untilMs - wall())); // below 0 if it is over: the rate has grown since
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

/** Of one event, the graver version is the later one. */
const severityOf = ({ lowered }: ThrottleSignal): number => (lowered ? 1 + Number(lowered.repeated) : 0);

function parseSignal(text: string): ThrottleSignal | undefined {
  try {
    return throttleSignalSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

// MERGED HEADER (rewrite or remove):
/* What the banks have said of their limits, of each environment; outlives a reload. */

export interface AdaptiveRates {
  /** The one of this environment, with this rate configured from now on. */
  of(environment: string, configured: BucketRate): AdaptiveRate;
  /** Reads what others were told; for the heartbeat. */
  refresh(): Promise<void>;
}

/** Nothing is known yet. */
export function createAdaptiveRates(parts: AdaptiveRateDependencies): AdaptiveRates {
  const limits = new Map<string, AdaptiveRate>();
  return {
    of(environment, configured) {
      const limit = limits.get(environment) ?? createAdaptiveRate(environment, configured, parts);
      limit.configure(configured);
      limits.set(environment, limit);
      return limit;
    },
    async refresh() {
      await Promise.all(Array.from(limits.values(), (limit) => limit.refresh()));
    },
  };
}

// MERGED HEADER (rewrite or remove):
/* How fast the bank is called after it has said 429: lowered at once, raised again slowly. Arithmetic alone. */

/** What a 429 taught. */
export interface RateReduction {
  /** Turns a second at which the bank said it. */
  readonly at: number;
  /** Whether it said it more than once, or soon again. */
  readonly repeated: boolean;
}

/** A 429 this soon after the last pause is a repeated one: the rate is still too high by far. Milliseconds. */
const repeatWindowMs = 10_000;

/** Repeated: half of it, and then no more than three quarters. Once: a little less. The bank may have had a bad moment. */
const reductions = {
  repeated: { base: 0.5, plateau: 0.75 },
  once: { base: 0.8, plateau: 0.9 },
} as const;

/** How long the way from the base to the plateau takes. Milliseconds. */
const approachMs = 5_000;
/** How long the rate then takes to grow by a tenth; ten times that in about twice the time, for growth is cubic. */
const growthMs = 25_000;
/** What it grows from at least, as a part of the configured rate: from any depth it is back within three minutes. */
const minGrowthShare = 1 / 30;
/** Turns a second at least: one in ten seconds, so that a bank which always says 429 does not end in hours of silence. */
const minPerSecond = 0.1;

/**
 * Turns a second, a while after the pause that came with the 429.
 *
 * The rate begins at a base, comes to a plateau below the rate that was too high, stays near it for long, and then grows
 * faster and faster, after CUBIC (RFC 9438 section 4.1): near the bank's limit a 429 every half minute or so costs little,
 * and a bank that has got well is found out within two minutes.
 *
 *     t < approach:  base + (plateau - base) * t / approach
 *     then:          plateau + 0.1 * max(plateau, configured / 30) * ((t - approach) / growth)^3
 *
 * It is never below one turn in ten seconds: the pauses that the bank asks for are kept besides.
 *
 * @param sinceMs   milliseconds since the pause ended; before that the rate is the base
 * @param configured the rate that is never exceeded
 */
export function recoveringRate({ at, repeated }: RateReduction, sinceMs: number, configured: number): number {
  const step = repeated ? reductions.repeated : reductions.once;
  const [base, plateau] = [at * step.base, at * step.plateau];
  const within = (perSecond: number) => Math.min(Math.max(perSecond, minPerSecond), configured);
  if (sinceMs <= 0) return within(base);
  if (sinceMs < approachMs) return within(base + ((plateau - base) * sinceMs) / approachMs);
  const growth = ((sinceMs - approachMs) / growthMs) ** 3;
  return within(plateau + 0.1 * Math.max(plateau, configured * minGrowthShare) * growth);
}

// MERGED HEADER (rewrite or remove):
/* How long the bank asks to be left alone. */

/**
 * The pause that `Retry-After` asks for (RFC 9110 section 10.2.3): seconds, or a date.
 *
 * @param nowMs milliseconds since 1970
 * @returns milliseconds, never below 0; `undefined` if there is none, or none that can be understood
 */
export function retryAfterMs(headers: HeaderFields, nowMs: number): number | undefined {
  const value = headerValue(headers, 'retry-after')?.trim();
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const dateMs = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value)
    ? Date.parse(value)
    : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
