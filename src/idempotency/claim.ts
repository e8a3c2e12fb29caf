/**
 * One attempt to carry a write out, and what its holder may say of it. What the state does not take now it is told
 * later; until then a repeat is told that the first one is in flight.
 */

import { GatewayError } from '../flow/errors.ts';
import type { PisResponse } from '../flow/messages.ts';
import type { Owed } from '../state/owed.ts';
import type { Log } from '../telemetry/log.ts';
import { logDoubt } from './doubts.ts';
import type { Entries } from './entries.ts';
import {
  type Answered,
  answered,
  type Claimed,
  type Entry,
  isDoubtful,
  released,
  type Sending,
  written,
} from './entry.ts';
import { nameOf, type OpenEntries } from './open-entries.ts';

export interface Claim {
  /** Where the first byte may have gone; `undefined` while nothing can have been sent. */
  environment(): string | undefined;
  /**
   * The last step before the first byte.
   *
   * @returns until when that byte may go: milliseconds of `performance.now()`
   * @throws GatewayError DUPLICATE_IN_FLIGHT if another attempt has taken over, STATE_UNAVAILABLE; nothing may be sent then
   */
  pass(environment: string): Promise<number>;
  /** Goes on without the state having taken the last step. */
  passUnrecorded(environment: string): number;
  /** The bank has answered: a repeat gets the same. */
  answered(response: PisResponse): Promise<void>;
  /** Nothing was sent, or the bank did nothing: the next one starts afresh. */
  release(): Promise<void>;
  /**
   * The bank may have carried it out: nobody sends it again before that is known. Said again, or once it is known, it
   * changes nothing.
   */
  doubt(why: string): Promise<void>;
}

/** How old the last step may be when the first byte goes: less than any doubt lasts. Milliseconds. */
const passedForMs = 1_000;

/** What claims work with. */
export interface ClaimParts {
  readonly entries: Entries;
  readonly open: OpenEntries;
  readonly owed: Owed<() => Promise<void>>;
  /** Tells who waits for this entry that it has changed. */
  readonly changed: (id: string) => void;
  readonly log: Log;
}

interface Terms {
  readonly id: string;
  /** As it was just written. */
  readonly entry: Claimed;
  /** How long an answer is listened for after the last step, and how long it is kept. Milliseconds. */
  readonly listenMs: number;
  readonly windowMs: number;
}

export function createClaim({ entries, open, owed, changed, log }: ClaimParts, terms: Terms): Claim {
  const { id, entry, listenMs, windowMs } = terms;
  let raw = written(entry);
  let sending: Sending | undefined;
  const name = nameOf(id, entry.attempt);
  let isListed = false;
  let isInDoubt = false;
  let hasEnded = false;

  const sendingTo = (environment: string): Sending => {
    return { ...entry, step: 'sending', environment, listenedUntil: Date.now() + listenMs };
  };

  /**
   * Takes the entry to its next step, or gives it back, unless it is not this attempt's any more: whoever found this
   * attempt dead may have taken it over, and operators may have resolved it.
   */
  async function stepTo(next: Entry | undefined, ttlMs?: number): Promise<void> {
    const stands = next ? await entries.replace(id, raw, next, ttlMs) : await givenBack();
    if (stands !== undefined) {
      raw = stands;
      return;
    }
    const stored = await entries.read(id);
    if (!stored) return next && keepAnew(next, ttlMs);
    if (stored.entry?.attempt !== entry.attempt || stored.entry.step === 'happened') return tooLate(next);
    if (stored.entry.step === 'answered') return; // by this step, which the state had taken without saying so
    raw = stored.raw;
    return stepTo(next, ttlMs);
  }

  const givenBack = async () => ((await entries.release(id, raw)) ? released : undefined);

  /** The state has lost the entry, or it was resolved as what did not happen: what is known now is known all the same. */
  async function keepAnew(next: Entry, ttlMs?: number): Promise<void> {
    if (Date.now() - entry.since > windowMs) return; // it was kept for as long as it had to be
    if (isDoubtful(next)) await open.add(name);
    const isKept = (await entries.begin(id, next, ttlMs)) || (await entries.beginAgain(id, next, ttlMs));
    if (!isKept) return stepTo(next, ttlMs);
    raw = written(next);
    if (isDoubtful(next)) await open.add(name); // whoever found no entry may have dropped it in between
    const { requestId, operation, tenant } = entry;
    const what = 'what was known of a payment was gone, lost or resolved otherwise; it is kept again';
    log('error', what, { requestId, operation, tenant });
  }

  function tooLate(next: Entry | undefined): void {
    if (next?.step !== 'answered') return;
    const { requestId, operation, tenant } = entry;
    const facts = { requestId, operation, tenant, environment: next.environment, status: next.status };
    log('error', 'the bank has answered what had been resolved otherwise', facts);
  }

  /** What is doubtful stays in the index until it is resolved; the rest leaves it when the state has taken the step, and not before. */
  function record(next?: Entry): Promise<void> {
    const staysOpen = isDoubtful(next);
    if (staysOpen && sending) logDoubt(log, sending, next.why);
    return owed.now(name, async () => {
      if (staysOpen && !isListed) await open.add(name);
      await stepTo(next, staysOpen ? undefined : windowMs);
      changed(id);
      if (sending && !staysOpen) void owed.now(`open ${name}`, () => open.remove(name));
    });
  }

  function close(next?: Answered): Promise<void> {
    hasEnded = true;
    return record(next);
  }

  return {
    environment: () => sending?.environment,
    async pass(environment) {
      const startedAtMs = performance.now();
      const next = sendingTo(environment);
      const [stands] = await Promise.all([entries.replace(id, raw, next), open.add(name)]);
      if (stands === undefined) throw takenOver();
      raw = stands;
      isListed = true;
      sending = next;
      return startedAtMs + passedForMs;
    },
    passUnrecorded(environment) {
      sending = sendingTo(environment);
      return performance.now() + passedForMs;
    },
    answered: (response) => close(sending && answered(sending, response)),
    release: () => close(),
    async doubt(why) {
      // What has come of it is owed already, and counts for more than a doubt.
      if (!sending || isInDoubt || hasEnded) return;
      isInDoubt = true;
      await record({ ...sending, step: 'in-doubt', why });
    },
  };
}

function takenOver(): GatewayError {
  const text =
    'This instance stood still meanwhile, and another one carries the request out; ask again with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}
