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
  answeredEntry,
  type ClaimedEntry,
  isInDoubt,
  type LedgerEntry,
  type SendingEntry,
  type SerializedEntry,
  sendingEntry,
  serialized,
  withOtherAttempt,
} from './ledger-entry.ts';
import { attemptName, type LedgerStore, type UnresolvedIndex } from './ledger-store.ts';
import type { LossGuard } from './loss-guard.ts';
import type { OwnWriteChange, OwnWrites } from './own-writes.ts';
import { logInDoubt } from './recovery.ts';
import type { ReleasedAttempts } from './released-attempts.ts';
import type { ReportDuplicate } from './restore-write.ts';
import type { StorageBudget } from './storage-budget.ts';

export interface Claim {
  /** Whether an earlier attempt was sent, and released after the bank's answer. */
  readonly followsReleasedAttempt: boolean;
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
  /**
   * Nothing was sent, or the bank has not processed the request: a repeat is executed as a new request.
   *
   * @param wasSent whether the bank has answered; `false` by default
   */
  release(wasSent?: boolean): Promise<void>;
  /**
   * The bank may have executed the request: nothing is sent again until the outcome is known. Has no effect when called
   * again, or when the outcome is already known.
   *
   * @param outcome that the bank's answer leaves open, if there is one
   */
  markInDoubt(why: string, outcome?: 'in-doubt'): Promise<void>;
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

/** `undefined` if the claim is released. */
type Outcome = SerializedEntry | undefined;

/** A class, because a factory would create two dozen functions for each payment. */
export class ClaimedAttempt implements Claim {
  readonly followsReleasedAttempt: boolean;
  readonly #dependencies: ClaimDependencies;
  readonly #terms: ClaimTerms;
  readonly #entry: ClaimedEntry;
  readonly #name: string;
  /** The stored text. */
  #raw: string;
  #sending: SerializedEntry<SendingEntry> | undefined = undefined;
  #isIndexed = false;
  #mayBeMarked = false;
  /** Whether the bank has answered this attempt, or an earlier one that was released. */
  #wasSent: boolean;
  #wasMarkedInDoubt = false;
  #hasEnded = false;
  /** Describes another attempt that also reached the bank. If there is one, the stored entry is in doubt. */
  #otherAttempt: string | undefined = undefined;
  #otherInitiators = none;

  constructor(dependencies: ClaimDependencies, terms: ClaimTerms) {
    const { id, entry, sequence } = terms;
    this.#dependencies = dependencies;
    this.#terms = terms;
    this.#entry = entry.entry;
    this.followsReleasedAttempt = entry.entry.followsReleasedAttempt ?? false;
    this.#wasSent = this.followsReleasedAttempt;
    this.#name = attemptName(id, entry.entry.attempt);
    this.#raw = entry.raw;
    dependencies.ownWrites.set(id, entry, { sequence });
  }

  sendingTo(): string | undefined {
    return this.#sending?.entry.environment;
  }

  markSending(environment: string): number | Promise<number> {
    const startedAtMs = performance.now();
    const { lossGuard } = this.#dependencies;
    const next = this.#sendingEntry(environment);
    if (lossGuard.isAllowed()) return this.#mark(next, startedAtMs);
    // this instance may have been suspended since the claim
    return lossGuard.waitUntilAllowed().then(() => this.#mark(next, startedAtMs));
  }

  markSendingUnrecorded(environment: string): number {
    if (this.#hasEnded) throw stateUnavailable(); // as in `markSending`
    this.#sending = this.#sendingEntry(environment);
    this.#remember(this.#sending, { sequence: Number.POSITIVE_INFINITY });
    return performance.now() + sendWithinMs;
  }

  mayBelongToOther(
    paymentId: string | undefined,
    ownTenants: readonly string[],
    waitMs: number,
  ): false | Promise<boolean> {
    const others = this.#otherInitiators.filter((tenant) => !ownTenants.includes(tenant));
    if (!this.#sending || others.length === 0) return false;
    return this.#dependencies.initiators.mayBelongTo(others, this.#sending.entry, paymentId, waitMs);
  }

  recordResponse(response: PisResponse): Promise<void> {
    this.#hasEnded = true;
    return this.#recordStep(this.#sending && answeredEntry(this.#sending, response));
  }

  recordResponseAfter(after: Promise<boolean>, response: PisResponse): boolean | Promise<boolean> {
    // Not if an earlier step may be pending: it would replace the response later. And a doubt about two attempts must stay.
    if (!this.#sending || this.#hasEnded || this.#wasMarkedInDoubt || this.#otherAttempt !== undefined)
      return false;
    const { id, windowMs } = this.#terms;
    const next = answeredEntry(this.#sending, response);
    return whenKnown(
      this.#dependencies.store.replace(id, this.#raw, next, ttlOf(next, windowMs), { after }),
      (isStored) => {
        if (!isStored) return false;
        this.#hasEnded = true;
        this.#remember(next, { ttlMs: windowMs });
        this.#onChanged(next, next);
        return true;
      },
      () => false, // `recordResponse` retries
    );
  }

  release(wasSent = false): Promise<void> {
    this.#wasSent ||= wasSent;
    if (this.#mayBeMarked) {
      const { releasedAttempts, storageBudget } = this.#dependencies;
      releasedAttempts.add(this.#name);
      // its initiator stays recorded
      if (this.#entry.operation === 'initiatePayment') storageBudget.countEntry(this.#terms.tenantName, 0);
    }
    this.#hasEnded = true;
    return this.#recordStep();
  }

  markInDoubt(why: string, outcome?: 'in-doubt'): Promise<void> {
    // After `recordResponse` and `release` the outcome is known, even if the state has not accepted it yet.
    if (!this.#sending || this.#wasMarkedInDoubt || this.#hasEnded) return Promise.resolve();
    this.#wasMarkedInDoubt = true;
    return this.#recordStep(serialized({ ...this.#sending.entry, step: 'in-doubt', why, outcome }));
  }

  #sendingEntry(environment: string): SerializedEntry<SendingEntry> {
    const { entry, lateAnswerMs } = this.#terms;
    return sendingEntry(entry, environment, Date.now() + lateAnswerMs);
  }

  /** Changes this instance's own writes, unless they contain another attempt with the same id. */
  #remember(next: SerializedEntry | undefined, change?: OwnWriteChange): void {
    const { ownWrites } = this.#dependencies;
    const { id } = this.#terms;
    const known = ownWrites.entryOf(id);
    if (known && known.attempt !== this.#entry.attempt) return;
    if (next) ownWrites.set(id, next, change);
    else ownWrites.delete(id);
  }

  #mark(next: SerializedEntry<SendingEntry>, startedAtMs: number): number | Promise<number> {
    if (this.#hasEnded) return Promise.reject(stateUnavailable()); // the deadline has passed, and the claim is released
    const { lossGuard, store, unresolvedIndex, initiators, countUnconfirmed } = this.#dependencies;
    const { id, lateAnswerMs, windowMs } = this.#terms;
    let fence: Fence;
    try {
      fence = lossGuard.fenceOf(id);
    } catch (refusal) {
      return Promise.reject(refusal);
    }
    this.#remember(next, { sequence: Number.POSITIVE_INFINITY }); // so that a loss during this write restores the mark
    this.#mayBeMarked = true;
    const replaced = store.replaceConfirmed(id, this.#raw, next, fence);
    const indexed = unresolvedIndex.addConfirmed(this.#name);
    const others =
      this.#entry.operation === 'initiatePayment'
        ? initiators.add(next.entry, lateAnswerMs + windowMs)
        : none;
    const isReplaced = knownResult(replaced);
    if (isReplaced !== undefined && indexed === done && !(others instanceof Promise))
      return this.#onMarked(next, startedAtMs, fence, isReplaced, others);
    return Promise.all([replaced, indexed, others]).then(
      ([isReplaced, , others]) => this.#onMarked(next, startedAtMs, fence, isReplaced, others),
      (thrown: unknown) => {
        if (thrown instanceof UnconfirmedError) countUnconfirmed();
        if (thrown instanceof EpochMismatchError) lossGuard.recheck();
        throw thrown;
      },
    );
  }

  #onMarked(
    next: SerializedEntry<SendingEntry>,
    startedAtMs: number,
    fence: Fence,
    isReplaced: boolean,
    others: readonly string[],
  ): number | Promise<number> {
    const { lossGuard } = this.#dependencies;
    if (!isReplaced) return Promise.reject(takenOverError());
    this.#raw = next.raw;
    this.#otherInitiators = others;
    this.#isIndexed = true;
    if (!lossGuard.isCurrent(this.#terms.id, fence)) return Promise.reject(stateUnavailable()); // the state may have lost the mark since
    if (!this.#hasEnded) this.#remember(next, { sequence: fence.sequence });
    this.#sending = next;
    return startedAtMs + sendWithinMs;
  }

  /** The step stays pending until the state has accepted it. */
  #recordStep(next?: SerializedEntry): Promise<void> {
    const { pendingWrites, unresolvedIndex, log } = this.#dependencies;
    const entry = next?.entry;
    const staysUnresolved = isInDoubt(entry);
    if (staysUnresolved && this.#sending) logInDoubt(log, this.#sending.entry, entry.why);
    this.#remember(next, staysUnresolved ? {} : { ttlMs: this.#terms.windowMs });
    return pendingWrites.addAndFlush(this.#name, () =>
      staysUnresolved && !this.#isIndexed
        ? unresolvedIndex.add(this.#name).then(() => this.#advance(next))
        : this.#advance(next),
    );
  }

  /**
   * Replaces the entry by its next step, or releases it. Leaves it alone if it no longer belongs to this attempt: an
   * instance that found this one dead may have taken it over, or an operator may have resolved it.
   */
  #advance(outcome: Outcome): Promise<void> {
    if (!outcome && this.#otherAttempt !== undefined) {
      this.#onAdvanced(outcome); // the other attempt may have paid: the entry stays in doubt
      return Promise.resolve();
    }
    const { store } = this.#dependencies;
    const { id, windowMs } = this.#terms;
    const next = this.#withDuplicate(outcome);
    const isChanged = next
      ? store.replace(id, this.#raw, next, ttlOf(next, windowMs))
      : store.release(id, this.#raw, this.#wasSent ? windowMs : undefined);
    if (isChanged === yes) {
      this.#onChanged(outcome, next);
      return done;
    }
    return isChanged.then((isDone) =>
      isDone ? this.#onChanged(outcome, next) : this.#onChangedByOther(outcome, next),
    );
  }

  #onChanged(outcome: Outcome, next: Outcome): void {
    if (next) {
      this.#raw = next.raw;
      this.#dependencies.storageBudget.countEntry(this.#terms.tenantName, next.raw.length);
    }
    this.#onAdvanced(outcome);
  }

  /** An attempt leaves the index only after the state has accepted its resolved entry. */
  #onAdvanced(outcome: Outcome): void {
    const { notifyChanged, pendingWrites, unresolvedIndex } = this.#dependencies;
    notifyChanged(this.#terms.id);
    if (this.#sending && !isInDoubt(outcome?.entry) && this.#otherAttempt === undefined)
      void pendingWrites.addAndFlush(`open ${this.#name}`, () => unresolvedIndex.remove(this.#name));
  }

  #withDuplicate(next: Outcome): Outcome {
    if (!next || this.#otherAttempt === undefined || next.entry.step === 'claimed') return next;
    return serialized(withOtherAttempt(next.entry, this.#otherAttempt));
  }

  async #onChangedByOther(outcome: Outcome, next: Outcome): Promise<void> {
    const { store, reportDuplicate } = this.#dependencies;
    const stored = await store.read(this.#terms.id);
    if (stored?.entry?.attempt === this.#entry.attempt) {
      if (stored.entry.step !== 'claimed') this.#otherAttempt = stored.entry.otherAttempt;
      const isResolved = stored.entry.step === 'happened' || stored.entry.step === 'answered';
      if (!isResolved) {
        this.#raw = stored.raw;
        await this.#advance(outcome);
        return;
      }
      if (stored.entry.step === 'happened') this.#logContradiction(next?.entry); // otherwise an earlier try succeeded unnoticed
    } else if (stored) {
      // The state lost this attempt, or an operator released it, and a repeat has made another one.
      if (next && next.entry.step !== 'claimed') await reportDuplicate(this.#terms.id, stored, next.entry);
    } else if (next && !(await this.#restore(next))) {
      await this.#advance(next);
      return;
    }
    this.#onAdvanced(outcome);
  }

  /**
   * The state has lost the entry, or an operator released it. Stores the later step of this attempt nevertheless.
   *
   * @returns false if there is an entry again
   */
  async #restore(next: SerializedEntry): Promise<boolean> {
    const { store, unresolvedIndex, storageBudget, log } = this.#dependencies;
    const { id, tenantName, windowMs } = this.#terms;
    if (Date.now() - this.#entry.since > windowMs) return true; // the entry expired as intended
    const staysUnresolved = isInDoubt(next.entry);
    if (staysUnresolved) await unresolvedIndex.add(this.#name);
    const ttlMs = ttlOf(next, windowMs);
    const isStored = (await store.create(id, next, ttlMs)) || (await store.replaceReleased(id, next, ttlMs));
    if (!isStored) return false;
    this.#raw = next.raw;
    storageBudget.countEntry(tenantName, next.raw.length);
    if (staysUnresolved) await unresolvedIndex.add(this.#name); // a scan that found no entry may have removed it
    const { requestId, operation, tenant } = this.#entry;
    const fields = { requestId, operation, tenant };
    log('error', 'the ledger entry of a payment was lost or released; stored it again', fields);
    return true;
  }

  #logContradiction(next: LedgerEntry | undefined): void {
    if (next?.step !== 'answered') return;
    const { requestId, operation, tenant } = this.#entry;
    if (operation === 'cancelPayment' && next.outcome === 'accepted') return; // both say that the payment is cancelled
    const fields = { requestId, operation, tenant, environment: next.environment, status: next.status };
    const message = 'the bank responded to a request that was already resolved with another outcome';
    this.#dependencies.log('error', message, fields);
  }
}

const ttlOf = ({ entry }: SerializedEntry, windowMs: number) => (isInDoubt(entry) ? undefined : windowMs);

function takenOverError(): GatewayError {
  const text =
    'This instance was suspended, and another instance is executing the request; repeat it with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}
