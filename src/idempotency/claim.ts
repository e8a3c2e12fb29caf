/**
 * One attempt to carry a write out, and what its holder may say of it. What the state does not take now it is told
 * later; until then a repeat is told that the first one is in flight.
 */

import { GatewayError } from '../request/errors.ts';
import type { PisResponse } from '../request/messages.ts';
import type { PendingWrites } from '../state/pending-writes.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type AnsweredEntry,
  answeredEntry,
  type ClaimedEntry,
  isInDoubt,
  type LedgerEntry,
  releasedMarker,
  type SendingEntry,
  serializeEntry,
} from './ledger-entry.ts';
import { attemptName, type LedgerStore, type UnresolvedIndex } from './ledger-store.ts';
import { logInDoubt } from './recovery.ts';

export interface Claim {
  /** Where the first byte may have gone; `undefined` while nothing can have been sent. */
  sendingTo(): string | undefined;
  /**
   * The last step before the first byte.
   *
   * @returns until when that byte may go: milliseconds of `performance.now()`
   * @throws GatewayError DUPLICATE_IN_FLIGHT if another attempt has taken over, STATE_UNAVAILABLE; nothing may be sent then
   */
  markSending(environment: string): Promise<number>;
  /** Goes on without the state having taken the last step. */
  markSendingUnrecorded(environment: string): number;
  /** The bank has answered: a repeat gets the same. */
  recordResponse(response: PisResponse): Promise<void>;
  /** Nothing was sent, or the bank did nothing: the next one starts afresh. */
  release(): Promise<void>;
  /**
   * The bank may have carried it out: nobody sends it again before that is known. Said again, or once it is known, it
   * changes nothing.
   */
  markInDoubt(why: string): Promise<void>;
}

/** How old the last step may be when the first byte goes: less than any doubt lasts. Milliseconds. */
const sendWithinMs = 1_000;

/** What claims work with. */
export interface ClaimDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly pendingWrites: PendingWrites<() => Promise<void>>;
  /** Tells who waits for this entry that it has changed. */
  readonly notifyChanged: (id: string) => void;
  readonly log: Log;
}

interface ClaimTerms {
  readonly id: string;
  /** As it was just written. */
  readonly entry: ClaimedEntry;
  /** How long an answer is listened for after the last step, and how long it is kept. Milliseconds. */
  readonly lateAnswerMs: number;
  readonly windowMs: number;
}

export function createClaim(
  { store, unresolvedIndex, pendingWrites, notifyChanged, log }: ClaimDependencies,
  terms: ClaimTerms,
): Claim {
  const { id, entry, lateAnswerMs, windowMs } = terms;
  let raw = serializeEntry(entry);
  let sending: SendingEntry | undefined;
  const name = attemptName(id, entry.attempt);
  let isListed = false;
  let wasMarkedInDoubt = false;
  let hasEnded = false;

  const sendingTo = (environment: string): SendingEntry => {
    return { ...entry, step: 'sending', environment, listenedUntil: Date.now() + lateAnswerMs };
  };

  /**
   * Takes the entry to its next step, or gives it back, unless it is not this attempt's any more: whoever found this
   * attempt dead may have taken it over, and operators may have resolved it.
   */
  async function advance(next: LedgerEntry | undefined, ttlMs?: number): Promise<void> {
    const stands = next ? await store.replace(id, raw, next, ttlMs) : await givenBack();
    if (stands !== undefined) {
      raw = stands;
      return;
    }
    const stored = await store.read(id);
    if (!stored) return next && restore(next, ttlMs);
    if (stored.entry?.attempt !== entry.attempt || stored.entry.step === 'happened')
      return logContradiction(next);
    if (stored.entry.step === 'answered') return; // by this step, which the state had taken without saying so
    raw = stored.raw;
    return advance(next, ttlMs);
  }

  const givenBack = async () => ((await store.release(id, raw)) ? releasedMarker : undefined);

  /** The state has lost the entry, or it was resolved as what did not happen: what is known now is known all the same. */
  async function restore(next: LedgerEntry, ttlMs?: number): Promise<void> {
    if (Date.now() - entry.since > windowMs) return; // it was kept for as long as it had to be
    if (isInDoubt(next)) await unresolvedIndex.add(name);
    const isKept = (await store.create(id, next, ttlMs)) || (await store.replaceReleased(id, next, ttlMs));
    if (!isKept) return advance(next, ttlMs);
    raw = serializeEntry(next);
    if (isInDoubt(next)) await unresolvedIndex.add(name); // whoever found no entry may have dropped it in between
    const { requestId, operation, tenant } = entry;
    const what = 'what was known of a payment was gone, lost or resolved otherwise; it is kept again';
    log('error', what, { requestId, operation, tenant });
  }

  function logContradiction(next: LedgerEntry | undefined): void {
    if (next?.step !== 'answered') return;
    const { requestId, operation, tenant } = entry;
    const facts = { requestId, operation, tenant, environment: next.environment, status: next.status };
    log('error', 'the bank has answered what had been resolved otherwise', facts);
  }

  /** What is doubtful stays in the index until it is resolved; the rest leaves it when the state has taken the step, and not before. */
  function recordStep(next?: LedgerEntry): Promise<void> {
    const staysOpen = isInDoubt(next);
    if (staysOpen && sending) logInDoubt(log, sending, next.why);
    return pendingWrites.addAndFlush(name, async () => {
      if (staysOpen && !isListed) await unresolvedIndex.add(name);
      await advance(next, staysOpen ? undefined : windowMs);
      notifyChanged(id);
      if (sending && !staysOpen)
        void pendingWrites.addAndFlush(`open ${name}`, () => unresolvedIndex.remove(name));
    });
  }

  function finish(next?: AnsweredEntry): Promise<void> {
    hasEnded = true;
    return recordStep(next);
  }

  return {
    sendingTo: () => sending?.environment,
    async markSending(environment) {
      const startedAtMs = performance.now();
      const next = sendingTo(environment);
      const [stands] = await Promise.all([store.replace(id, raw, next), unresolvedIndex.add(name)]);
      if (stands === undefined) throw takenOverError();
      raw = stands;
      isListed = true;
      sending = next;
      return startedAtMs + sendWithinMs;
    },
    markSendingUnrecorded(environment) {
      sending = sendingTo(environment);
      return performance.now() + sendWithinMs;
    },
    recordResponse: (response) => finish(sending && answeredEntry(sending, response)),
    release: () => finish(),
    async markInDoubt(why) {
      // What has come of it is owed already, and counts for more than a doubt.
      if (!sending || wasMarkedInDoubt || hasEnded) return;
      wasMarkedInDoubt = true;
      await recordStep({ ...sending, step: 'in-doubt', why });
    },
  };
}

function takenOverError(): GatewayError {
  const text =
    'This instance stood still meanwhile, and another one carries the request out; ask again with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}
