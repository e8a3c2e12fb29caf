/** What the bank says of its own limits (429, and 503 with Retry-After): all instances pause, and then go slower. */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { HeaderFields } from '../../pis/headers.ts';
import type { Announcements, BucketRate, KeyValues } from '../../state/ports.ts';
import { learnedRate, soonMs } from './learned-rate.ts';
import { retryAfterMs } from './retry-after.ts';

/** The longest pause that is kept, in milliseconds; a bank that wants more says so again. */
const longestPauseMs = 120_000;
/** The pause after a 429 that does not say how long, or says none. */
const shortestPauseMs = 1_000;
/** How long what was learnt is kept for new instances; the rate has recovered by then. */
const keptMs = 600_000;

const lessonShape = z.object({
  id: z.string(),
  pauseMs: z.number().min(0).max(longestPauseMs),
  /** Milliseconds since 1970, by the clock of the instance that was told. */
  untilMs: z.number(),
  lowered: z.object({ at: z.number().positive(), repeated: z.boolean() }).nullable(),
});

/** What instances tell each other. */
type Lesson = Readonly<z.output<typeof lessonShape>>;

export interface BankLimit {
  /** The rate at this moment; turns come one by one while it is lowered. */
  rate(): BucketRate;
  /** How long nothing may be sent; 0 = send. Milliseconds. */
  pausedMs(): number;
  /** Learns from an answer. @param sentAtMs when its request was sent, on the clock of `now` */
  heard(answer: Answered, sentAtMs: number): void;
  /** Calls the listener whenever a pause begins. @returns stops that */
  whenPaused(listener: () => void): () => void;
  /** Another rate is configured from now on; what was learnt stays. */
  configure(rate: BucketRate): void;
  /** Reads what others were told; a state that is out of reach changes nothing. */
  refresh(): Promise<void>;
}

/** What there is to learn from. */
export interface Answered {
  readonly status: number;
  readonly headers: HeaderFields;
}

export interface Parts {
  readonly keyValues: KeyValues;
  readonly announcements: Announcements;
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
export function createBankLimit(environment: string, rate: BucketRate, parts: Parts): BankLimit {
  const { keyValues, announcements, now = () => performance.now(), wall = Date.now } = parts;
  const name = `limit:${environment}`;
  let configured = rate;
  let known: Lesson | undefined;
  let resumesAtMs = Number.NEGATIVE_INFINITY;
  let listeners: readonly (() => void)[] = [];

  announcements.subscribe(name, (message) => {
    const lesson = parsed(message);
    if (lesson) adopt(lesson, lesson.pauseMs);
  });

  function adopt(lesson: Lesson, pauseMs: number): void {
    if (lesson.id === known?.id && weightOf(lesson) <= weightOf(known)) return;
    known = lesson;
    resumesAtMs = Math.max(resumesAtMs, now() + pauseMs);
    for (const listener of listeners) listener();
  }

  function rateAt(ms: number): number {
    const lowered = known?.lowered;
    return lowered ? learnedRate(lowered, ms - resumesAtMs, configured.perSecond) : configured.perSecond;
  }

  /** @returns `undefined` if all of it is known */
  function taught(status: number, sentAtMs: number): Pick<Lesson, 'id' | 'lowered'> | undefined {
    const before = known?.lowered ?? null;
    if (!known || sentAtMs >= resumesAtMs) {
      const soonAgain = sentAtMs - resumesAtMs < soonMs;
      const lowered = status === 429 ? { at: rateAt(sentAtMs), repeated: soonAgain } : before;
      return { id: randomUUID(), lowered };
    }
    // It was on its way when the pause began.
    if (status !== 429 || before?.repeated) return undefined;
    const again = before ? { ...before, repeated: true } : { at: configured.perSecond, repeated: false };
    return { id: known.id, lowered: again };
  }

  function heard({ status, headers }: Answered, sentAtMs: number): void {
    if (status !== 429 && status !== 503) return;
    const asked = retryAfterMs(headers, wall());
    if (status === 503 && asked === undefined) return;
    const lesson = taught(status, sentAtMs);
    if (!lesson) return;
    const pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, asked ?? 0));
    tell({ ...lesson, pauseMs, untilMs: wall() + pauseMs });
  }

  function tell(lesson: Lesson): void {
    adopt(lesson, lesson.pauseMs);
    const text = JSON.stringify(lesson);
    // Whoever cannot be reached is told by the bank itself, or reads it with the next heartbeat.
    announcements.publish(name, text).catch(() => {});
    keyValues.write(name, text, keptMs).catch(() => {});
  }

  return {
    rate() {
      const perSecond = rateAt(now());
      return perSecond < configured.perSecond ? { perSecond, burst: 1 } : configured;
    },
    pausedMs: () => Math.max(0, resumesAtMs - now()),
    heard,
    async refresh() {
      const text = await keyValues.read(name).catch(() => undefined);
      const lesson = text === undefined ? undefined : parsed(text);
      if (!lesson || lesson.untilMs <= (known?.untilMs ?? 0)) return;
      adopt(lesson, Math.min(lesson.pauseMs, lesson.untilMs - wall())); // below 0 if it is over: the rate has grown since
    },
    whenPaused(listener) {
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
const weightOf = ({ lowered }: Lesson): number => (lowered ? 1 + Number(lowered.repeated) : 0);

function parsed(text: string): Lesson | undefined {
  try {
    return lessonShape.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
