/**
 * One attempt to execute a write, and its steps in the ledger. A step that the state does not accept stays pending and
 * is retried; until then a repeat is answered with DUPLICATE_IN_FLIGHT.
 */

import { GatewayError, stateUnavailable } from '../request/errors.ts';
import type { PisResponse } from '../request/messages.ts';
import type { PendingWrites } from '../state/pending-writes.ts';
import { EpochMismatchError, UnconfirmedError } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { Initiators } from './initiators.ts';
import {
  type AnsweredEntry,
  answeredEntry,
  type ClaimedEntry,
  isInDoubt,
  type LedgerEntry,
  type SendingEntry,
  serializeEntry,
  withOtherAttempt,
} from './ledger-entry.ts';
import { attemptName, type LedgerStore, type StoredEntry, type UnresolvedIndex } from './ledger-store.ts';
import type { LossGuard } from './loss-guard.ts';
import type { OwnWrites } from './own-writes.ts';
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
   * @returns until when the first byte may be sent: milliseconds of `performance.now()`
   * @throws GatewayError DUPLICATE_IN_FLIGHT if another attempt has taken over, STATE_UNAVAILABLE; nothing may be sent
   */
  markSending(environment: string): Promise<number>;
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
  ): Promise<boolean>;
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
  readonly entry: ClaimedEntry;
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
  { id, entry, tenantName, sequence, lateAnswerMs, windowMs }: ClaimTerms,
): Claim {
  const name = attemptName(id, entry.attempt);
  let raw = serializeEntry(entry);
  let sending: SendingEntry | undefined;
  let isIndexed = false;
  let mayBeMarked = false;
  let wasMarkedInDoubt = false;
  let hasEnded = false;
  /** What is known of another attempt that reached the bank, too: the stored outcome of this one is in doubt. */
  let otherAttempt: string | undefined;
  let otherInitiators: readonly string[] = [];

  const sendingEntry = (environment: string): SendingEntry => {
    return { ...entry, step: 'sending', environment, listenedUntil: Date.now() + lateAnswerMs };
  };

  /** Changes the own memory, unless it holds another attempt of the same id. */
  function remember(next: LedgerEntry | undefined, change?: Parameters<OwnWrites['set']>[2]): void {
    const known = ownWrites.entryOf(id);
    if (known && known.attempt !== entry.attempt) return;
    if (next) ownWrites.set(id, next, change);
    else ownWrites.delete(id);
  }

  function finish(next?: AnsweredEntry): Promise<void> {
    hasEnded = true;
    return recordStep(next);
  }

  /** An attempt leaves the index only after the state has accepted its resolved entry. */
  function recordStep(next?: LedgerEntry): Promise<void> {
    const staysUnresolved = isInDoubt(next);
    if (staysUnresolved && sending) logInDoubt(log, sending, next.why);
    remember(next, staysUnresolved ? {} : { ttlMs: windowMs });
    return pendingWrites.addAndFlush(name, async () => {
      if (staysUnresolved && !isIndexed) await unresolvedIndex.add(name);
      await advance(next, staysUnresolved ? undefined : windowMs);
      notifyChanged(id);
      if (sending && !staysUnresolved && otherAttempt === undefined)
        void pendingWrites.addAndFlush(`open ${name}`, () => unresolvedIndex.remove(name));
    });
  }

  /**
   * Replaces the entry by its next step, or releases it. Leaves it alone if it no longer belongs to this attempt: an
   * instance that found this one dead may have taken it over, or an operator may have resolved it.
   */
  async function advance(outcome: LedgerEntry | undefined, ttlMs?: number): Promise<void> {
    if (!outcome && otherAttempt !== undefined) return; // the other attempt may have paid: the entry stays in doubt
    if (!outcome && (await store.release(id, raw))) return;
    const next = withDuplicate(outcome);
    const replaced = next && (await store.replace(id, raw, next, isInDoubt(next) ? undefined : ttlMs));
    if (replaced !== undefined) {
      raw = replaced;
      storageBudget.countEntry(tenantName, raw.length);
      return;
    }
    const stored = await store.read(id);
    if (!stored) return next && restore(next, ttlMs);
    if (stored.entry?.attempt !== entry.attempt) return onOtherAttempt(stored, next);
    if (stored.entry.step !== 'claimed') otherAttempt = stored.entry.otherAttempt;
    if (stored.entry.step === 'happened') return logContradiction(next);
    if (stored.entry.step === 'answered') return; // an earlier try of this step succeeded unnoticed
    raw = stored.raw;
    return advance(outcome, ttlMs);
  }

  const withDuplicate = (next: LedgerEntry | undefined) =>
    next && next.step !== 'claimed' && otherAttempt !== undefined
      ? withOtherAttempt(next, otherAttempt)
      : next;

  /** The state lost this attempt, or an operator released it, and a repeat has made another one. */
  async function onOtherAttempt(stored: StoredEntry, next: LedgerEntry | undefined): Promise<void> {
    if (next && next.step !== 'claimed') await reportDuplicate(id, stored, next);
  }

  /** The state has lost the entry, or an operator released it. Stores the later step of this attempt nevertheless. */
  async function restore(next: LedgerEntry, ttlMs?: number): Promise<void> {
    if (Date.now() - entry.since > windowMs) return; // the entry expired as intended
    if (isInDoubt(next)) await unresolvedIndex.add(name);
    const isStored = (await store.create(id, next, ttlMs)) || (await store.replaceReleased(id, next, ttlMs));
    if (!isStored) return advance(next, ttlMs);
    raw = serializeEntry(next);
    storageBudget.countEntry(tenantName, raw.length);
    if (isInDoubt(next)) await unresolvedIndex.add(name); // a scan that found no entry may have removed it
    const { requestId, operation, tenant } = entry;
    const message = 'the ledger entry of a payment was lost or released; the gateway stored it again';
    log('error', message, { requestId, operation, tenant });
  }

  function logContradiction(next: LedgerEntry | undefined): void {
    if (next?.step !== 'answered') return;
    const { requestId, operation, tenant } = entry;
    if (operation === 'cancelPayment' && next.status < 300) return; // both say that the payment is cancelled
    const fields = { requestId, operation, tenant, environment: next.environment, status: next.status };
    log('error', 'the bank answered a request that had already been resolved otherwise', fields);
  }

  ownWrites.set(id, entry, { sequence });

  return {
    sendingTo: () => sending?.environment,
    async markSending(environment) {
      const startedAtMs = performance.now();
      const next = sendingEntry(environment);
      if (!lossGuard.isAllowed()) await lossGuard.waitUntilAllowed(); // this instance may have been suspended since the claim
      if (hasEnded) throw stateUnavailable(); // the deadline has passed, and the claim is released
      const current = lossGuard.fenceOf(id);
      remember(next, { sequence: Number.POSITIVE_INFINITY }); // so that a loss during this write restores the mark
      mayBeMarked = true;
      const [replaced, , others] = await Promise.all([
        store.replaceConfirmed(id, raw, next, current).catch(recheckOnLoss(lossGuard)),
        unresolvedIndex.addConfirmed(name),
        entry.operation === 'initiatePayment' ? initiators.add(next, lateAnswerMs + windowMs) : [],
      ]).catch((thrown: unknown) => {
        if (thrown instanceof UnconfirmedError) countUnconfirmed();
        throw thrown;
      });
      if (replaced === undefined) throw takenOverError();
      raw = replaced;
      otherInitiators = others;
      isIndexed = true;
      if (!lossGuard.isCurrent(id, current)) throw stateUnavailable(); // the state may have lost the mark since
      if (!hasEnded) remember(next, { sequence: current.sequence });
      sending = next;
      return startedAtMs + sendWithinMs;
    },
    markSendingUnrecorded(environment) {
      sending = sendingEntry(environment);
      remember(sending, { sequence: Number.POSITIVE_INFINITY });
      return performance.now() + sendWithinMs;
    },
    async mayBelongToOther(paymentId, ownTenants, waitMs) {
      const others = otherInitiators.filter((tenant) => !ownTenants.includes(tenant));
      if (!sending || others.length === 0) return false;
      return initiators.mayBelongTo(others, sending, paymentId, waitMs);
    },
    recordResponse: (response) => finish(sending && answeredEntry(sending, response)),
    release() {
      if (mayBeMarked) {
        releasedAttempts.add(name);
        if (entry.operation === 'initiatePayment') storageBudget.countEntry(tenantName, 0); // its initiator stays recorded
      }
      return finish();
    },
    async markInDoubt(why) {
      // After `finish` the outcome is known, even if the state has not accepted it yet.
      if (!sending || wasMarkedInDoubt || hasEnded) return;
      wasMarkedInDoubt = true;
      await recordStep({ ...sending, step: 'in-doubt', why });
    },
  };
}

/** For a failed write: makes the guard check the state if the epoch was another one. Throws the same error. */
export function recheckOnLoss(lossGuard: Pick<LossGuard, 'recheck'>) {
  return (thrown: unknown): never => {
    if (thrown instanceof EpochMismatchError) lossGuard.recheck();
    throw thrown;
  };
}

function takenOverError(): GatewayError {
  const text =
    'This instance was suspended, and another one executes the request; repeat it with the same X-Request-ID.';
  return new GatewayError('DUPLICATE_IN_FLIGHT', text);
}
