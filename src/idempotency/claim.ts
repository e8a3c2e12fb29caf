/**
 * One attempt to execute a write, and its steps in the ledger. A step that the state does not accept stays pending and
 * is retried; until then a repeat is answered with DUPLICATE_IN_FLIGHT.
 */

import { GatewayError, stateUnavailable } from '../request/errors.ts';
import type { PisResponse } from '../request/messages.ts';
import { done, knownResult, whenKnown, yes } from '../state/known-results.ts';
import type { PendingWrites } from '../state/pending-writes.ts';
import { EpochMismatchError, type Fence, UnconfirmedError } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { Initiators } from './initiators.ts';
import {
  type AnsweredEntry,
  answeredEntry,
  type ClaimedEntry,
  isInDoubt,
  type LedgerEntry,
  type SendingEntry,
  type SerializedEntry,
  serialized,
  withOtherAttempt,
} from './ledger-entry.ts';
import { attemptName, type LedgerStore, type StoredEntry, type UnresolvedIndex } from './ledger-store.ts';
import type { LossGuard } from './loss-guard.ts';
import type { OwnWriteChange, OwnWrites } from './own-writes.ts';
import { logInDoubt } from './recovery.ts';
import type { ReleasedAttempts } from './released-attempts.ts';
import type { ReportDuplicate } from './restore-write.ts';
import type { StorageBudget } from './storage-budget.ts';

export interface Claim {
  /** The environment that may have received the first byte; `undefined` while nothing can have been sent. */
  sendingTo(): string | undefined;
  /**
   * The write-ahead mark: records before the first byte that the bank may have received the request.
   *
   * @returns until when the first byte may be sent: milliseconds of `performance.now()`. A promise unless the mark is written at
   *   once. If nothing may be sent, rejects with GatewayError DUPLICATE_IN_FLIGHT, because another attempt has taken over, or
   *   STATE_UNAVAILABLE
   */
  markSending(environment: string): number | Promise<number>;
  /** Like `markSending`, for `ifStateFails: allow`: continues although the state did not accept the mark. */
  markSendingUnrecorded(environment: string): number;
  /**
   * Whether the payment in the bank's response may belong to another tenant, which sent the same X-Request-ID before.
   *
   * @param paymentId  in the bank's response; `undefined` if it names none
   * @param ownTenants all identities of the caller's tenant
   * @param waitMs     how long to wait for initiations that are in flight, in milliseconds
   * @throws GatewayError STATE_UNAVAILABLE
   */
  mayBelongToOther(
    paymentId: string | undefined,
    ownTenants: readonly string[],
    waitMs: number,
  ): false | Promise<boolean>;
  /** Records the bank's response; repeats get it from now on. */
  recordResponse(response: PisResponse): Promise<void>;
  /**
   * Records the bank's response in one step with another write. Never fails.
   *
   * @param after the result of the other write
   * @returns whether the response is recorded; false if the other write has set nothing. A promise unless that is known at once
   */
  recordResponseAfter(after: Promise<boolean>, response: PisResponse): boolean | Promise<boolean>;
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
  readonly releasedAttempts: ReleasedAttempts;
  /** Called when a mark was refused because too few replicas confirmed it. */
  readonly countUnconfirmed: () => void;
  readonly initiators: Initiators;
  readonly ownWrites: OwnWrites;
  readonly lossGuard: Pick<LossGuard, 'isAllowed' | 'waitUntilAllowed' | 'fenceOf' | 'isCurrent' | 'recheck'>;
  readonly reportDuplicate: ReportDuplicate;
  readonly storageBudget: StorageBudget;
  /** Wakes the repeats that wait for this entry, on all instances. */
  readonly notifyChanged: (id: string) => void;
  readonly log: Log;
}

interface ClaimTerms {
  readonly id: string;
  /** The entry as just written. */
  readonly entry: SerializedEntry<ClaimedEntry>;
  readonly tenantName: string;
  /** The sequence number of the partition after the claim. */
  readonly sequence: number;
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

const none: readonly string[] = [];

export function createClaim(
  {
    store,
    unresolvedIndex,
    pendingWrites,
    releasedAttempts,
    countUnconfirmed,
    initiators,
    ownWrites,
    lossGuard,
    reportDuplicate,
    storageBudget,
    notifyChanged,
    log,
  }: ClaimDependencies,
  { id, entry: claimed, tenantName, sequence, lateAnswerMs, windowMs }: ClaimTerms,
): Claim {
  const { entry } = claimed;
  const name = attemptName(id, entry.attempt);
  let { raw } = claimed;
  let sending: SendingEntry | undefined;
  let isIndexed = false;
  let mayBeMarked = false;
  let wasMarkedInDoubt = false;
  let hasEnded = false;
  /** Describes another attempt that also reached the bank. If there is one, the stored entry is in doubt. */
  let otherAttempt: string | undefined;
  let otherInitiators: readonly string[] = [];

  const sendingEntry = (environment: string): SendingEntry => {
    return { ...entry, step: 'sending', environment, listenedUntil: Date.now() + lateAnswerMs };
  };

  /** Changes this instance's own writes, unless they contain another attempt with the same id. */
  function remember(next: SerializedEntry | undefined, change?: OwnWriteChange): void {
    const known = ownWrites.entryOf(id);
    if (known && known.attempt !== entry.attempt) return;
    if (next) ownWrites.set(id, next, change);
    else ownWrites.delete(id);
  }

  function mark(next: SerializedEntry<SendingEntry>, startedAtMs: number): number | Promise<number> {
    if (hasEnded) return Promise.reject(stateUnavailable()); // the deadline has passed, and the claim is released
    let fence: Fence;
    try {
      fence = lossGuard.fenceOf(id);
    } catch (refusal) {
      return Promise.reject(refusal);
    }
    remember(next, { sequence: Number.POSITIVE_INFINITY }); // so that a loss during this write restores the mark
    mayBeMarked = true;
    const onMarked = (isReplaced: boolean, others: readonly string[]): number | Promise<number> => {
      if (!isReplaced) return Promise.reject(takenOverError());
      raw = next.raw;
      otherInitiators = others;
      isIndexed = true;
      if (!lossGuard.isCurrent(id, fence)) return Promise.reject(stateUnavailable()); // the state may have lost the mark since
      if (!hasEnded) remember(next, { sequence: fence.sequence });
      sending = next.entry;
      return startedAtMs + sendWithinMs;
    };
    const onFailure = (thrown: unknown): never => {
      if (thrown instanceof UnconfirmedError) countUnconfirmed();
      if (thrown instanceof EpochMismatchError) lossGuard.recheck();
      throw thrown;
    };
    const replaced = store.replaceConfirmed(id, raw, next, fence);
    const indexed = unresolvedIndex.addConfirmed(name);
    const others =
      entry.operation === 'initiatePayment' ? initiators.add(next.entry, lateAnswerMs + windowMs) : none;
    const isReplaced = knownResult(replaced);
    if (isReplaced !== undefined && indexed === done && !(others instanceof Promise))
      return onMarked(isReplaced, others);
    return Promise.all([replaced, indexed, others]).then(
      ([isReplaced, , others]) => onMarked(isReplaced, others),
      onFailure,
    );
  }

  function finish(next?: AnsweredEntry): Promise<void> {
    hasEnded = true;
    return recordStep(next);
  }

  /** The step stays pending until the state has accepted it. */
  function recordStep(nextEntry?: LedgerEntry): Promise<void> {
    const next = nextEntry && serialized(nextEntry);
    const staysUnresolved = isInDoubt(nextEntry);
    if (staysUnresolved && sending) logInDoubt(log, sending, nextEntry.why);
    remember(next, staysUnresolved ? {} : { ttlMs: windowMs });
    return pendingWrites.addAndFlush(name, () =>
      staysUnresolved && !isIndexed ? unresolvedIndex.add(name).then(() => advance(next)) : advance(next),
    );
  }

  /**
   * Replaces the entry by its next step, or releases it. Leaves it alone if it no longer belongs to this attempt: an
   * instance that found this one dead may have taken it over, or an operator may have resolved it.
   */
  function advance(outcome: SerializedEntry | undefined): Promise<void> {
    if (!outcome && otherAttempt !== undefined) {
      onAdvanced(outcome); // the other attempt may have paid: the entry stays in doubt
      return Promise.resolve();
    }
    const next = withDuplicate(outcome);
    const isChanged = next ? store.replace(id, raw, next, ttlOf(next.entry)) : store.release(id, raw);
    if (isChanged === yes) {
      onChanged(outcome, next);
      return done;
    }
    return isChanged.then((isDone) => (isDone ? onChanged(outcome, next) : onChangedByOther(outcome, next)));
  }

  function onChanged(outcome: SerializedEntry | undefined, next: SerializedEntry | undefined): void {
    if (next) {
      raw = next.raw;
      storageBudget.countEntry(tenantName, raw.length);
    }
    onAdvanced(outcome);
  }

  const ttlOf = (next: LedgerEntry) => (isInDoubt(next) ? undefined : windowMs);

  /** An attempt leaves the index only after the state has accepted its resolved entry. */
  function onAdvanced(outcome: SerializedEntry | undefined): void {
    notifyChanged(id);
    if (sending && !isInDoubt(outcome?.entry) && otherAttempt === undefined)
      void pendingWrites.addAndFlush(`open ${name}`, () => unresolvedIndex.remove(name));
  }

  function withDuplicate(next: SerializedEntry | undefined): SerializedEntry | undefined {
    if (!next || otherAttempt === undefined || next.entry.step === 'claimed') return next;
    return serialized(withOtherAttempt(next.entry, otherAttempt));
  }

  async function onChangedByOther(
    outcome: SerializedEntry | undefined,
    next: SerializedEntry | undefined,
  ): Promise<void> {
    const stored = await store.read(id);
    if (stored?.entry?.attempt === entry.attempt) {
      if (stored.entry.step !== 'claimed') otherAttempt = stored.entry.otherAttempt;
      const isResolved = stored.entry.step === 'happened' || stored.entry.step === 'answered';
      if (!isResolved) {
        raw = stored.raw;
        await advance(outcome);
        return;
      }
      if (stored.entry.step === 'happened') logContradiction(next?.entry); // otherwise an earlier try succeeded unnoticed
    } else if (stored) await onOtherAttempt(stored, next?.entry);
    else if (next && !(await restore(next))) {
      await advance(next);
      return;
    }
    onAdvanced(outcome);
  }

  /** The state lost this attempt, or an operator released it, and a repeat has made another one. */
  async function onOtherAttempt(stored: StoredEntry, next: LedgerEntry | undefined): Promise<void> {
    if (next && next.step !== 'claimed') await reportDuplicate(id, stored, next);
  }

  /**
   * The state has lost the entry, or an operator released it. Stores the later step of this attempt nevertheless.
   *
   * @returns false if there is an entry again
   */
  async function restore(next: SerializedEntry): Promise<boolean> {
    if (Date.now() - entry.since > windowMs) return true; // the entry expired as intended
    const staysUnresolved = isInDoubt(next.entry);
    if (staysUnresolved) await unresolvedIndex.add(name);
    const ttlMs = ttlOf(next.entry);
    const isStored = (await store.create(id, next, ttlMs)) || (await store.replaceReleased(id, next, ttlMs));
    if (!isStored) return false;
    raw = next.raw;
    storageBudget.countEntry(tenantName, raw.length);
    if (staysUnresolved) await unresolvedIndex.add(name); // a scan that found no entry may have removed it
    const { requestId, operation, tenant } = entry;
    const message = 'the ledger entry of a payment was lost or released; stored it again';
    log('error', message, { requestId, operation, tenant });
    return true;
  }

  function logContradiction(next: LedgerEntry | undefined): void {
    if (next?.step !== 'answered') return;
    const { requestId, operation, tenant } = entry;
    if (operation === 'cancelPayment' && next.status < 300) return; // both say that the payment is cancelled
    const fields = { requestId, operation, tenant, environment: next.environment, status: next.status };
    log('error', 'the bank responded to a request that was already resolved with another outcome', fields);
  }

  ownWrites.set(id, claimed, { sequence });

  return {
    sendingTo: () => sending?.environment,
    markSending(environment) {
      const startedAtMs = performance.now();
      const next = serialized(sendingEntry(environment));
      if (!lossGuard.isAllowed())
        // this instance may have been suspended since the claim
        return lossGuard.waitUntilAllowed().then(() => mark(next, startedAtMs));
      return mark(next, startedAtMs);
    },
    markSendingUnrecorded(environment) {
      if (hasEnded) throw stateUnavailable(); // as in `markSending`
      sending = sendingEntry(environment);
      remember(serialized(sending), { sequence: Number.POSITIVE_INFINITY });
      return performance.now() + sendWithinMs;
    },
    mayBelongToOther(paymentId, ownTenants, waitMs) {
      const others = otherInitiators.filter((tenant) => !ownTenants.includes(tenant));
      if (!sending || others.length === 0) return false;
      return initiators.mayBelongTo(others, sending, paymentId, waitMs);
    },
    recordResponse: (response) => finish(sending && answeredEntry(sending, response)),
    recordResponseAfter(after, response) {
      // Not if an earlier step may be pending: it would replace the response later. And a doubt about two attempts must stay.
      if (!sending || hasEnded || wasMarkedInDoubt || otherAttempt !== undefined) return false;
      const next = serialized(answeredEntry(sending, response));
      return whenKnown(
        store.replace(id, raw, next, ttlOf(next.entry), undefined, after),
        (isStored) => {
          if (!isStored) return false;
          hasEnded = true;
          remember(next, { ttlMs: windowMs });
          onChanged(next, next);
          return true;
        },
        () => false, // `recordResponse` retries
      );
    },
    release() {
      if (mayBeMarked) {
        releasedAttempts.add(name);
        if (entry.operation === 'initiatePayment') storageBudget.countEntry(tenantName, 0); // its initiator stays recorded
      }
      return finish();
    },
    markInDoubt(why) {
      // After `finish` the outcome is known, even if the state has not accepted it yet.
      if (!sending || wasMarkedInDoubt || hasEnded) return Promise.resolve();
      wasMarkedInDoubt = true;
      return recordStep({ ...sending, step: 'in-doubt', why });
    },
  };
}

function takenOverError(): GatewayError {
  const text =
    'This instance was suspended, and another instance is executing the request; repeat it with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}
