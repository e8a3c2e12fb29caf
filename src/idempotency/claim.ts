/**
 * One attempt to execute a write, and its steps in the ledger. A step that the state does not accept stays pending and
 * is retried; until then a repeat is answered with DUPLICATE_IN_FLIGHT.
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
  type SendingEntry,
  serializeEntry,
} from './ledger-entry.ts';
import { attemptName, type LedgerStore, type UnresolvedIndex } from './ledger-store.ts';
import { logInDoubt } from './recovery.ts';

export interface Claim {
  /** The environment that may have received the first byte; `undefined` while nothing can have been sent. */
  sendingTo(): string | undefined;
  /**
   * The write-ahead mark: records before the first byte that the bank may have received the request.
   *
   * @returns until when the first byte may be sent: milliseconds of `performance.now()`
   * @throws GatewayError DUPLICATE_IN_FLIGHT if another attempt has taken over, STATE_UNAVAILABLE; nothing may be sent
   */
  markSending(environment: string): Promise<number>;
  /** Like `markSending`, for `ifStateFails: allow`: continues although the state did not accept the mark. */
  markSendingUnrecorded(environment: string): number;
  /** Records the bank's response; repeats get it from now on. */
  recordResponse(response: PisResponse): Promise<void>;
  /** Nothing was sent, or the bank did nothing: a repeat is executed as a new request. */
  release(): Promise<void>;
  /**
   * The bank may have executed the request: nothing is sent again until the outcome is known. Has no effect when called
   * again, or when the outcome is already known.
   */
  markInDoubt(why: string): Promise<void>;
}

export interface ClaimDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly pendingWrites: PendingWrites<() => Promise<void>>;
  /** Wakes the repeats that wait for this entry, on all instances. */
  readonly notifyChanged: (id: string) => void;
  readonly log: Log;
}

interface ClaimTerms {
  readonly id: string;
  /** The entry as just written. */
  readonly entry: ClaimedEntry;
  /** How long after `markSending` a response is recorded, in milliseconds. */
  readonly lateAnswerMs: number;
  /** How long a response is stored, in milliseconds. */
  readonly windowMs: number;
}

/**
 * The first byte must leave within this time after `markSending` began, in milliseconds. An operator cannot release an
 * entry this soon after its mark.
 */
const sendWithinMs = 1_000;

export function createClaim(
  { store, unresolvedIndex, pendingWrites, notifyChanged, log }: ClaimDependencies,
  { id, entry, lateAnswerMs, windowMs }: ClaimTerms,
): Claim {
  const name = attemptName(id, entry.attempt);
  let raw = serializeEntry(entry);
  let sending: SendingEntry | undefined;
  let isIndexed = false;
  let wasMarkedInDoubt = false;
  let hasEnded = false;

  const sendingEntry = (environment: string): SendingEntry => {
    return { ...entry, step: 'sending', environment, listenedUntil: Date.now() + lateAnswerMs };
  };

  function finish(next?: AnsweredEntry): Promise<void> {
    hasEnded = true;
    return recordStep(next);
  }

  /** An attempt leaves the index only after the state has accepted its resolved entry. */
  function recordStep(next?: LedgerEntry): Promise<void> {
    const staysUnresolved = isInDoubt(next);
    if (staysUnresolved && sending) logInDoubt(log, sending, next.why);
    return pendingWrites.addAndFlush(name, async () => {
      if (staysUnresolved && !isIndexed) await unresolvedIndex.add(name);
      await advance(next, staysUnresolved ? undefined : windowMs);
      notifyChanged(id);
      if (sending && !staysUnresolved)
        void pendingWrites.addAndFlush(`open ${name}`, () => unresolvedIndex.remove(name));
    });
  }

  /**
   * Replaces the entry by its next step, or releases it. Leaves it alone if it no longer belongs to this attempt: an
   * instance that found this one dead may have taken it over, or an operator may have resolved it.
   */
  async function advance(next: LedgerEntry | undefined, ttlMs?: number): Promise<void> {
    if (!next && (await store.release(id, raw))) return;
    const replaced = next && (await store.replace(id, raw, next, ttlMs));
    if (replaced !== undefined) {
      raw = replaced;
      return;
    }
    const stored = await store.read(id);
    if (!stored) return next && restore(next, ttlMs);
    if (stored.entry?.attempt !== entry.attempt || stored.entry.step === 'happened')
      return logContradiction(next);
    if (stored.entry.step === 'answered') return; // an earlier try of this step succeeded unnoticed
    raw = stored.raw;
    return advance(next, ttlMs);
  }

  /** The state has lost the entry, or an operator released it: the later knowledge of this attempt is stored anyway. */
  async function restore(next: LedgerEntry, ttlMs?: number): Promise<void> {
    if (Date.now() - entry.since > windowMs) return; // the entry expired as intended
    if (isInDoubt(next)) await unresolvedIndex.add(name);
    const isStored = (await store.create(id, next, ttlMs)) || (await store.replaceReleased(id, next, ttlMs));
    if (!isStored) return advance(next, ttlMs);
    raw = serializeEntry(next);
    if (isInDoubt(next)) await unresolvedIndex.add(name); // a scan that found no entry may have removed it
    const { requestId, operation, tenant } = entry;
    const message = 'the ledger entry of a payment was lost or released; the gateway stored it again';
    log('error', message, { requestId, operation, tenant });
  }

  function logContradiction(next: LedgerEntry | undefined): void {
    if (next?.step !== 'answered') return;
    const { requestId, operation, tenant } = entry;
    const fields = { requestId, operation, tenant, environment: next.environment, status: next.status };
    log('error', 'the bank answered a request that had already been resolved otherwise', fields);
  }

  return {
    sendingTo: () => sending?.environment,
    async markSending(environment) {
      const startedAtMs = performance.now();
      const next = sendingEntry(environment);
      const [replaced] = await Promise.all([store.replace(id, raw, next), unresolvedIndex.add(name)]);
      if (replaced === undefined) throw takenOverError();
      raw = replaced;
      isIndexed = true;
      sending = next;
      return startedAtMs + sendWithinMs;
    },
    markSendingUnrecorded(environment) {
      sending = sendingEntry(environment);
      return performance.now() + sendWithinMs;
    },
    recordResponse: (response) => finish(sending && answeredEntry(sending, response)),
    release: () => finish(),
    async markInDoubt(why) {
      // After `finish` the outcome is known, even if the state has not accepted it yet.
      if (!sending || wasMarkedInDoubt || hasEnded) return;
      wasMarkedInDoubt = true;
      await recordStep({ ...sending, step: 'in-doubt', why });
    },
  };
}

function takenOverError(): GatewayError {
  const text =
    'This instance was suspended, and another one executes the request; repeat it with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}
