/**
 * The ledger: one entry for each use of an `X-Request-ID` by a tenant.
 *
 *   (none) ---> claimed ---> sending ---> answered
 *                               \
 *                                --> in-doubt ---> answered | happened | (none)
 *
 * A claimed or sending entry is released if the request provably did not reach the bank. If its instance dies, a claimed
 * entry is taken over by the next request, and a sending entry is put in doubt.
 */

import { randomUUID } from 'node:crypto';
import type { EncryptionKeys } from '../config/encryption-keys.ts';
import type { PisRequest } from '../request/messages.ts';
import { type ChangeWaiter, createChangeWaiter } from '../state/change-waiter.ts';
import { whenKnown } from '../state/known-results.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import { EpochMismatchError, type Fence, type KeyValues, type State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import { type Claim, type ClaimDependencies, ClaimedAttempt } from './claim.ts';
import { createFollowResolutions } from './follow-resolutions.ts';
import { createInitiators } from './initiators.ts';
import {
  type AnsweredEntry,
  type ClaimedEntry,
  claimedEntry,
  type HappenedEntry,
  isInDoubt,
  type LedgerEntry,
  type SerializedEntry,
  serialized,
} from './ledger-entry.ts';
import { createLedgerStore, createUnresolvedIndex } from './ledger-store.ts';
import { createLossGuard, type LossGuard, type LossSettings } from './loss-guard.ts';
import { createOwnWrites, noOwnWrites } from './own-writes.ts';
import {
  createInDoubtWrites,
  createInstanceLeases,
  type InDoubtWrites,
  type InstanceLeases,
} from './recovery.ts';
import { createReleasedAttempts } from './released-attempts.ts';
import { createIdentifyRequest, type IdentifyRequest, type RequestIdentity } from './request-identity.ts';
import { createReportDuplicate, createRestoreWrite } from './restore-write.ts';
import type { StorageBudget } from './storage-budget.ts';

/** The parts of the ledger that survive a reload of the configuration. */
export interface LedgerServices extends ClaimDependencies {
  readonly identify: IdentifyRequest;
  readonly instanceLeases: InstanceLeases;
  readonly lossGuard: LossGuard;
  readonly entryChanges: ChangeWaiter;
  readonly inDoubt: InDoubtWrites;
  /** Number of writes in doubt of all instances at the last scan; `undefined` before the first one. */
  inDoubtCount(): number | undefined;
  /** Retries pending writes, and looks for entries of dead instances. To be called every second. */
  maintain(): Promise<void>;
  /** Ends the lease of this instance; writes that it is still sending are put in doubt. Never fails. */
  deregister(): Promise<void>;
}

/** `maintain` scans the index on every fifth call. */
const callsPerScan = 5;

export interface LedgerOptions {
  /** By default a random one. */
  readonly instanceId?: string | undefined;
  /** Stores the entries, encrypted if a key is configured. */
  readonly entries: KeyValues;
  /** The keys of `state.encryptionKeyFile`, if there is one. */
  readonly keys?: EncryptionKeys | undefined;
  /** `idempotency.memory`, in bytes; `undefined` if the state cannot lose writes that this process remembers. */
  readonly memoryBytes: number | undefined;
  readonly lossSettings: () => LossSettings;
  readonly storageBudget: StorageBudget;
  readonly countDuplicate: () => void;
  readonly countUnconfirmed: () => void;
  /** `payments.rememberFor`, in milliseconds. */
  readonly rememberForMs: number;
  readonly log: Log;
}

export function createLedgerServices(
  state: Pick<State, 'keyValues' | 'sets' | 'pubsub' | 'partitions' | 'identity' | 'onDisconnect'>,
  {
    instanceId,
    entries,
    keys,
    memoryBytes,
    lossSettings,
    storageBudget,
    countDuplicate,
    countUnconfirmed,
    rememberForMs,
    log,
  }: LedgerOptions,
): LedgerServices {
  const { keyValues, sets, pubsub } = state;
  const store = createLedgerStore(entries, state.partitions);
  const unresolvedIndex = createUnresolvedIndex(sets);
  const instanceLeases = createInstanceLeases(keyValues, sets, instanceId);
  const entryChanges = createChangeWaiter(pubsub, 'ledger');
  const initiators = createInitiators({ keyValues, store, entryChanges }, rememberForMs);
  const ownWrites = memoryBytes === undefined ? noOwnWrites : createOwnWrites(memoryBytes);
  const reportDuplicate = createReportDuplicate({ store, unresolvedIndex, countDuplicate, log });
  const restore = createRestoreWrite({ store, unresolvedIndex, initiators, ownWrites, reportDuplicate });
  const guardDependencies = { state, keyValues, instanceLeases, ownWrites, restore, log };
  const lossGuard = createLossGuard({ ...guardDependencies, settings: lossSettings });
  const pendingWrites = createPendingWrites<() => Promise<void>>((write) => write());
  const releasedAttempts = createReleasedAttempts();
  const notifyChanged = entryChanges.notify;
  const recoveryDependencies = { store, unresolvedIndex, initiators, instanceLeases, releasedAttempts };
  const inDoubt = createInDoubtWrites({ ...recoveryDependencies, notifyChanged, log });
  const windowMs = () => lossSettings().windowMs;
  const followResolutions = createFollowResolutions({ store, ownWrites, lossGuard, windowMs });
  let calls = 0;
  let inDoubtCount: number | undefined;
  return {
    identify: createIdentifyRequest(keys),
    store,
    unresolvedIndex,
    instanceLeases,
    initiators,
    ownWrites,
    lossGuard,
    reportDuplicate,
    storageBudget,
    inDoubt,
    inDoubtCount: () => inDoubtCount,
    entryChanges,
    notifyChanged,
    pendingWrites,
    releasedAttempts,
    countUnconfirmed,
    log,
    async maintain() {
      await pendingWrites.flush().catch(() => {}); // the next call retries
      if (calls++ % callsPerScan !== 0) return;
      inDoubtCount = await inDoubt.scan();
      await followResolutions();
    },
    async deregister() {
      if (lossGuard.report().status !== 'ok') return; // the lease holds the registration, for which the others may wait
      await instanceLeases.deregister().catch(() => {}); // the lease expires by itself
    },
  };
}

/** The result of a claim. */
export type ClaimResult =
  /** The id was unused: this request executes the write. */
  | { readonly kind: 'claimed'; readonly claim: Claim }
  | { readonly kind: 'another-request'; readonly difference: 'headers' | 'content' }
  | { readonly kind: 'running' }
  | { readonly kind: 'answered'; readonly entry: AnsweredEntry }
  | { readonly kind: 'happened'; readonly entry: HappenedEntry }
  /** `environment` is missing if the entry cannot be read. */
  | { readonly kind: 'in-doubt'; readonly environment?: string };

export interface Ledger {
  /**
   * @returns a promise, unless the result is known at once. Rejects with GatewayError STATE_UNAVAILABLE if the state cannot be read;
   *   nothing may be sent
   */
  claim(identity: RequestIdentity, request: PisRequest): ClaimResult | Promise<ClaimResult>;
}

interface LedgerSettings {
  /** How long after the deadline a response is recorded, in milliseconds. */
  readonly lateAnswer: number;
  /** How long a response is stored, in milliseconds. */
  readonly window: number;
}

/** An attempt of this instance to claim an `X-Request-ID`. */
interface Attempt {
  readonly identity: RequestIdentity;
  readonly request: PisRequest;
  readonly own: SerializedEntry<ClaimedEntry>;
  /** How long the claim is stored, in milliseconds. */
  readonly ttlMs: number;
  /** How long from now a response is recorded, in milliseconds. */
  readonly lateAnswerMs: number;
}

const running = { kind: 'running' } as const;

/** How long a claim outlives the deadline of its request if nobody releases it, in milliseconds. */
const claimMarginMs = 10_000;

export function createLedger(services: LedgerServices, { lateAnswer, window }: LedgerSettings): Ledger {
  const { store, instanceLeases, pendingWrites, inDoubt, ownWrites, lossGuard } = services;

  function claim(identity: RequestIdentity, request: PisRequest): ClaimResult | Promise<ClaimResult> {
    const known = ownResult(identity);
    if (known) return known;
    if (lossGuard.isAllowed()) return claimNow(identity, request);
    return lossGuard.waitUntilAllowed().then(() => claimNow(identity, request));
  }

  function claimNow(identity: RequestIdentity, request: PisRequest): ClaimResult | Promise<ClaimResult> {
    const { id } = identity;
    const leftMs = Math.max(0, request.deadlineAtMs - performance.now());
    const attempt: Attempt = {
      identity,
      request,
      own: ownEntry(identity, request, false),
      ttlMs: leftMs + claimMarginMs,
      lateAnswerMs: leftMs + lateAnswer,
    };
    let fence: Fence;
    try {
      fence = lossGuard.fenceOf(id);
    } catch (refusal) {
      return afterRefusal(attempt, refusal);
    }
    request.onClaim?.(request); // shares the round trip
    return whenKnown(
      store.create(id, attempt.own, attempt.ttlMs, fence),
      (isCreated) => (isCreated ? claimed(attempt, fence) : claimExisting(attempt)),
      (thrown: unknown) => {
        onFailedClaim(attempt, thrown);
        return afterRefusal(attempt, thrown);
      },
    );
  }

  const ownEntry = (identity: RequestIdentity, request: PisRequest, followsReleasedAttempt: boolean) => {
    const holder = instanceLeases.ownId;
    return serialized(
      claimedEntry(request, identity.fingerprints, { attempt: randomUUID(), holder, followsReleasedAttempt }),
    );
  };

  /** The attempt after one that was sent and released. Stored for the whole window, so that this is not forgotten. */
  const followUp = (attempt: Attempt): Attempt => ({
    ...attempt,
    own: ownEntry(attempt.identity, attempt.request, true),
    ttlMs: window,
  });

  function claimed({ identity, request, own, lateAnswerMs }: Attempt, { sequence }: Fence): ClaimResult {
    const terms = { id: identity.id, entry: own, tenantName: request.client.tenant, sequence };
    return {
      kind: 'claimed',
      claim: new ClaimedAttempt(services, { ...terms, lateAnswerMs, windowMs: window }),
    };
  }

  async function afterRefusal(attempt: Attempt, refusal: unknown): Promise<ClaimResult> {
    if (await isKnownElsewhere(attempt.identity.id)) return claimExisting(attempt);
    throw refusal;
  }

  /** Never fails: an entry exists, even if it cannot be read now. */
  const claimExisting = (attempt: Attempt): Promise<ClaimResult> =>
    takeOverOrReport(attempt).catch(() => running);

  async function takeOverOrReport(attempt: Attempt): Promise<ClaimResult> {
    const { identity, request, own, ttlMs } = attempt;
    const { id } = identity;
    const stored = await store.read(id);
    if (!stored) {
      // The entry was released just now. A Redis replica with a slow clock may show the marker longer than its TTL.
      const later = followUp(attempt);
      const replaceSent = (fence: Fence) => store.replaceReleased(id, later.own, later.ttlMs, fence, 'sent');
      const replaceUnsent = (fence: Fence) => store.replaceReleased(id, own, ttlMs, fence, 'unsent');
      return (
        (await tryClaim(later, replaceSent)) ??
        (await tryClaim(attempt, replaceUnsent)) ??
        claim(identity, request)
      );
    }
    const { raw, entry } = stored;
    if (!entry) return { kind: 'in-doubt' };
    if (entry.step !== 'claimed' && entry.step !== 'sending') return finishedResult(entry, identity);
    if (await instanceLeases.isAlive(entry.holder)) return running;
    if (entry.step === 'claimed') {
      const next = entry.followsReleasedAttempt ? followUp(attempt) : attempt;
      const takeOver = (fence: Fence) => store.replace(id, raw, next.own, next.ttlMs, { fence });
      return (await tryClaim(next, takeOver)) ?? claim(identity, request);
    }
    await inDoubt.markOrphaned(id, raw, entry);
    return claim(identity, request);
  }

  /** @returns `undefined` if `write` finds another entry than expected */
  async function tryClaim(
    attempt: Attempt,
    write: (fence: Fence) => Promise<boolean>,
  ): Promise<ClaimResult | undefined> {
    const fence = lossGuard.fenceOf(attempt.identity.id);
    try {
      return (await write(fence)) ? claimed(attempt, fence) : undefined;
    } catch (thrown) {
      onFailedClaim(attempt, thrown);
      throw thrown;
    }
  }

  /** The result from this instance's own writes; none for a write in doubt, which another instance may have resolved. */
  function ownResult(identity: RequestIdentity): ClaimResult | undefined {
    const entry = ownWrites.entryOf(identity.id);
    if (!entry || isInDoubt(entry) || entry.step === 'happened') return undefined;
    return entry.step === 'answered' ? finishedResult(entry, identity) : running;
  }

  /** Whether a refused write is a repeat of one that the state still holds. */
  async function isKnownElsewhere(id: string): Promise<boolean> {
    if (lossGuard.report().status === 'ok') return false; // the state is unavailable
    return (await store.read(id).catch(() => undefined)) !== undefined;
  }

  /** The state may have stored a claim that no request will execute: releases it, as long as it could block repeats. */
  function onFailedClaim({ identity, own, ttlMs }: Attempt, thrown: unknown): void {
    if (thrown instanceof EpochMismatchError) {
      lossGuard.recheck();
      return; // nothing was stored
    }
    const expiresAtMs = performance.now() + ttlMs;
    void pendingWrites.addAndFlush(`claim ${own.entry.attempt}`, async () => {
      const sentForMs = own.entry.followsReleasedAttempt ? window : undefined;
      if (performance.now() < expiresAtMs) await store.release(identity.id, own.raw, sentForMs);
    });
  }

  return { claim };
}

/** A doubt is reported even for a different request: the advice to use a new X-Request-ID could cause a second payment. */
export function finishedResult(
  entry: Exclude<LedgerEntry, { step: 'claimed' | 'sending' }>,
  identity: RequestIdentity,
): ClaimResult {
  const difference = identity.differenceFrom(entry.fingerprints);
  // Without the key, the answer might belong to another request, and the advice to use a new X-Request-ID might pay twice.
  if (entry.step === 'in-doubt' || difference === 'unknown' || (isInDoubt(entry) && difference !== 'none'))
    return { kind: 'in-doubt', environment: entry.environment };
  if (difference !== 'none') return { kind: 'another-request', difference };
  return entry.step === 'answered' ? { kind: 'answered', entry } : { kind: 'happened', entry };
}
