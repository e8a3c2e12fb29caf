/**
 * How fast one environment of the bank is called: turns from a bucket that all instances share, slots of this instance.
 *
 * The instance books turns, not the request: whoever is first in the line when a turn comes takes it. So a payment
 * overtakes all that waits, although nobody knew of it when the turn was booked.
 */

import type { ShapingSettings } from '../../config/schema.ts';
import type { GatewayError } from '../../flow/errors.ts';
import { createRoll } from '../../flow/roll.ts';
import type { BucketRate, Reservations } from '../../state/ports.ts';
import type { Answered, BankLimit } from './bank-limit.ts';
import { bankRests, hungUpWaiting, turnedAway, waitedTooLong } from './queue-refusals.ts';
import type { ShaperView } from './shaper-view.ts';
import { createTurns } from './turns.ts';
import { type Call, createWaiter, type Waiter } from './waiter.ts';
import { createWaitingLine } from './waiting-line.ts';

export interface Shaper {
  /**
   * Waits for a turn and a slot, then sends, and learns from the answer.
   *
   * @throws GatewayError QUEUE_FULL or QUEUE_TIMEOUT, nothing was sent then; and whatever `send` throws
   */
  run<Answer extends Answered>(call: Call, send: () => Promise<Answer>): Promise<Answer>;
  view(): ShaperView;
  /** For a reload: it is told of no pause any more, and keeps those it learns of with the next turn. */
  close(): void;
}

interface Parts {
  /** Never fails: goes on alone while the state is out of reach. */
  readonly reservations: Pick<Reservations, 'reserve'>;
  readonly limit: BankLimit;
  /** Milliseconds on a clock that does not run backwards. */
  readonly now?: () => number;
}

/** Asking for a turn that is there takes time itself: who may not wait at all waits for that. Milliseconds. */
const askingMs = 50;

/** The shaper of one environment, in one instance. */
export function createShaper(environment: string, settings: ShapingSettings, parts: Parts): Shaper {
  const { reservations, limit, now = () => performance.now() } = parts;
  const { maxConcurrent, maxWait } = settings;
  const line = createWaitingLine<Waiter>(settings.queue);
  const clockless = createRoll<() => void>();
  let running = 0;
  let resume: NodeJS.Timeout | undefined;

  const turnsFor = (whom: (waiter: Waiter) => boolean, rate: () => BucketRate) =>
    createTurns({
      book: (maxWaitMs) => reservations.reserve(`bucket:${environment}`, rate(), maxWaitMs),
      longestWaitMs: Math.max(...Object.values(maxWait)),
      came: letGo,
      outOfReach: () => refuseThose(whom, waitedTooLong),
      moved: proceed,
    });
  const forPayments = turnsFor(isPayment, limit.rate);
  const forOthers = turnsFor(
    (waiter) => !isPayment(waiter),
    () => leavingSome(limit.rate()),
  );
  const close = limit.whenPaused(() => {
    refuseThose(waitsInVain, () => bankRests(limit.pausedMs()));
    proceed();
  });

  function proceed(): void {
    if (line.size() === 0) return;
    const pausedMs = limit.pausedMs();
    if (pausedMs > 0) resumeIn(pausedMs);
    else wantTurns(maxConcurrent - running);
    if (forPayments.asking() || forOthers.asking()) return; // it may well go at once
    for (const startClock of clockless.all()) startClock();
  }

  /** Each turn on its way has a slot of its own. */
  function wantTurns(slots: number): void {
    const payments = line.size('write');
    forPayments.want(Math.min(payments, slots - forOthers.expected()));
    forOthers.want(Math.min(line.size() - payments, slots - forPayments.expected()));
  }

  function resumeIn(ms: number): void {
    clearTimeout(resume);
    resume = setTimeout(proceed, Math.ceil(ms));
  }

  /** The first in the line takes the turn. Some may have waited too long unnoticed, or their TPPs have left. */
  function letGo(): void {
    if (limit.pausedMs() > 0 || running >= maxConcurrent) return;
    let first = line.next();
    for (; first && (first.hasLeft() || first.untilMs < now()); first = line.next())
      first.fail(first.hasLeft() ? hungUpWaiting() : waitedTooLong());
    if (!first) return;
    running += 1;
    first.go();
  }

  /** A status read never waits for the bank to resume: what is known of it can be served at once. */
  const waitsInVain = ({ lane, untilMs }: Pick<Waiter, 'lane' | 'untilMs'>) =>
    limit.pausedMs() > 0 && (lane === 'status' || untilMs <= now() + limit.pausedMs());

  function refuseThose(which: (waiter: Waiter) => boolean, why: () => GatewayError): void {
    for (const waiter of line.all().filter(which)) refuse(waiter, why());
  }

  function refuse(waiter: Waiter, why: GatewayError): void {
    if (line.remove(waiter)) waiter.fail(why);
  }

  /** Comes back with a turn and a slot. */
  async function turnOf(call: Call): Promise<void> {
    if (call.signal?.aborted) throw hungUpWaiting();
    const untilMs = Math.min(now() + Math.max(askingMs, maxWait[call.lane]), call.deadlineAtMs);
    if (waitsInVain({ lane: call.lane, untilMs })) throw bankRests(limit.pausedMs());
    const { waiter, gone } = createWaiter(call, untilMs, {
      late: (one) => refuse(one, waitedTooLong()),
      left: (one) => refuse(one, hungUpWaiting()),
    });
    const out = line.add(waiter);
    out?.fail(turnedAway());
    const leave = clockless.enter(() => {
      waiter.startClock(untilMs - now());
      leave();
    });
    proceed();
    return gone.finally(leave);
  }

  return {
    async run(call, send) {
      await turnOf(call);
      const sentAtMs = now();
      try {
        const answer = await send();
        limit.heard(answer, sentAtMs);
        return answer;
      } finally {
        running -= 1;
        proceed();
      }
    },
    view: () => ({
      waiting: { write: line.size('write'), read: line.size('read'), status: line.size('status') },
      running,
      perSecond: limit.rate().perSecond,
      pausedMs: limit.pausedMs(),
    }),
    close,
  };
}

const isPayment = ({ lane }: Waiter) => lane === 'write';

/**
 * The bucket as reads see it: half of what it holds is left for payments. A burst of reads, or many instances that have
 * each booked a turn for one, then make no payment wait; and all together never send more than the bucket holds.
 */
const leavingSome = ({ perSecond, burst }: BucketRate): BucketRate => ({
  perSecond,
  burst: burst - Math.floor(burst / 2),
});
