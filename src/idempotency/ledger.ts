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
import type { PisRequest } from '../request/messages.ts';
import { type ChangeWaiter, createChangeWaiter } from '../state/change-waiter.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import { type Claim, type ClaimDependencies, createClaim } from './claim.ts';
import {
  type AnsweredEntry,
  type ClaimedEntry,
  claimedEntry,
  type HappenedEntry,
  type LedgerEntry,
  serializeEntry,
} from './ledger-entry.ts';
import { createLedgerStore, createUnresolvedIndex } from './ledger-store.ts';
import {
  createInDoubtWrites,
  createInstanceLeases,
  type InDoubtWrites,
  type InstanceLeases,
} from './recovery.ts';
import type { RequestIdentity } from './request-identity.ts';

/** The parts of the ledger that survive a reload of the configuration. */
export interface LedgerServices extends ClaimDependencies {
  readonly instanceLeases: InstanceLeases;
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

export function createLedgerServices(
  { keyValues, sets, pubsub }: Pick<State, 'keyValues' | 'sets' | 'pubsub'>,
  log: Log,
): LedgerServices {
  const store = createLedgerStore(keyValues);
  const unresolvedIndex = createUnresolvedIndex(sets);
  const instanceLeases = createInstanceLeases(keyValues, sets);
  const pendingWrites = createPendingWrites<() => Promise<void>>((write) => write());
  const entryChanges = createChangeWaiter(pubsub, 'ledger');
  const notifyChanged = entryChanges.notify;
  const inDoubt = createInDoubtWrites({ store, unresolvedIndex, instanceLeases, notifyChanged, log });
  let calls = 0;
  let inDoubtCount: number | undefined;
  return {
    store,
    unresolvedIndex,
    instanceLeases,
    inDoubt,
    inDoubtCount: () => inDoubtCount,
    entryChanges,
    notifyChanged,
    pendingWrites,
    log,
    async maintain() {
      await pendingWrites.flush().catch(() => {}); // the next call retries
      if (calls++ % callsPerScan === 0) inDoubtCount = await inDoubt.scan();
    },
    deregister: () => instanceLeases.deregister().catch(() => {}), // the lease expires by itself
  };
}

/** What the ledger knows about a request. */
export type ClaimResult =
  /** The id was unused: this request executes the write. */
  | { readonly kind: 'claimed'; readonly claim: Claim }
  | { readonly kind: 'another-request' }
  | { readonly kind: 'running' }
  | { readonly kind: 'answered'; readonly entry: AnsweredEntry }
  | { readonly kind: 'happened'; readonly entry: HappenedEntry }
  /** `environment` is missing if the entry cannot be read. */
  | { readonly kind: 'in-doubt'; readonly environment?: string };

export interface Ledger {
  /** @throws GatewayError STATE_UNAVAILABLE if the state cannot be read; nothing may be sent */
  claim(identity: RequestIdentity, request: PisRequest): Promise<ClaimResult>;
}

interface LedgerSettings {
  /** How long after the deadline a response is recorded, in milliseconds. */
  readonly lateAnswer: number;
  /** How long a response is stored, in milliseconds. */
  readonly window: number;
}

const running = { kind: 'running' } as const;

/** How long a claim outlives the deadline of its request if nobody releases it, in milliseconds. */
const claimMarginMs = 10_000;

export function createLedger(services: LedgerServices, { lateAnswer, window }: LedgerSettings): Ledger {
  const { store, instanceLeases, pendingWrites, inDoubt } = services;

  async function claim(identity: RequestIdentity, request: PisRequest): Promise<ClaimResult> {
    const { id, fingerprint } = identity;
    const leftMs = Math.max(0, request.deadlineAtMs - performance.now());
    const own = claimedEntry(request, { fingerprint, attempt: randomUUID(), holder: instanceLeases.ownId });
    const ttlMs = leftMs + claimMarginMs;
    const claimed = (): ClaimResult => {
      const lateAnswerMs = leftMs + lateAnswer;
      return {
        kind: 'claimed',
        claim: createClaim(services, { id, entry: own, lateAnswerMs, windowMs: window }),
      };
    };
    const onUncertain = (thrown: unknown) => releaseUncertain(id, own, ttlMs, thrown);

    const claimExisting = async (): Promise<ClaimResult> => {
      const stored = await store.read(id);
      if (!stored) {
        // The entry was released just now. A Redis replica with a slow clock may show the marker longer than its TTL.
        if (await store.replaceReleased(id, own, ttlMs).catch(onUncertain)) return claimed();
        return claim(identity, request);
      }
      const { raw, entry } = stored;
      if (!entry) return { kind: 'in-doubt' };
      if (entry.fingerprint !== fingerprint) return { kind: 'another-request' };
      if (entry.step !== 'claimed' && entry.step !== 'sending') return finishedResult(entry);
      if (await instanceLeases.isAlive(entry.holder)) return running;
      if (entry.step === 'sending') await inDoubt.markOrphaned(id, raw, entry);
      else if (await store.replace(id, raw, own, ttlMs).catch(onUncertain)) return claimed();
      return claim(identity, request);
    };

    await instanceLeases.register();
    if (await store.create(id, own, ttlMs).catch(onUncertain)) return claimed();
    return claimExisting().catch(() => running); // an entry exists, but it cannot be read now
  }

  /** The state may have stored a claim that no request will execute: releases it, as long as it could block repeats. */
  function releaseUncertain(id: string, own: ClaimedEntry, ttlMs: number, thrown: unknown): never {
    const expiresAtMs = performance.now() + ttlMs;
    void pendingWrites.addAndFlush(`claim ${own.attempt}`, async () => {
      if (performance.now() < expiresAtMs) await store.release(id, serializeEntry(own));
    });
    throw thrown;
  }

  return { claim };
}

function finishedResult(entry: Exclude<LedgerEntry, { step: 'claimed' | 'sending' }>): ClaimResult {
  switch (entry.step) {
    case 'in-doubt':
      return { kind: 'in-doubt', environment: entry.environment };
    case 'answered':
      return { kind: 'answered', entry };
    case 'happened':
      return { kind: 'happened', entry };
  }
}
