/**
 * The ledger: one entry for each use of an `X-Request-ID` by a tenant.
 *
 *   (none) ---> claimed ---> sending ---> answered         Claimed and sending are given back if the bank was provably
 *                               \                           not reached. A claim of a dead instance is taken over; what
 *                                --> in-doubt ---> answered | happened | (none)        a dead instance sent is in doubt.
 */

import { randomUUID } from 'node:crypto';
import type { PisRequest } from '../request/messages.ts';
import { type Claim, type ClaimDependencies, createClaim } from './claim.ts';
import {
  type AnsweredEntry,
  type ClaimedEntry,
  claimedEntry,
  type HappenedEntry,
  type LedgerEntry,
  type SendingEntry,
  serializeEntry,
} from './ledger-entry.ts';
import type { InstanceLeases } from './recovery.ts';
import type { RequestIdentity } from './request-identity.ts';

/** What there is of an `X-Request-ID`. */
export type ClaimResult =
  /** Nothing was: it is carried out by whoever has found that. */
  | { readonly kind: 'free'; readonly claim: Claim }
  | { readonly kind: 'another-request' }
  | { readonly kind: 'running' }
  | { readonly kind: 'answered'; readonly entry: AnsweredEntry }
  | { readonly kind: 'happened'; readonly entry: HappenedEntry }
  /** Without environment if what is kept cannot be read. */
  | { readonly kind: 'in-doubt'; readonly environment?: string };

export interface Ledger {
  /** @throws GatewayError STATE_UNAVAILABLE if the state cannot be asked; nothing may be sent then */
  claim(identity: RequestIdentity, request: PisRequest): Promise<ClaimResult>;
}

interface LedgerSettings {
  /** How long an answer is listened for after the deadline, and how long it is kept. Milliseconds. */
  readonly lateAnswer: number;
  readonly window: number;
}

interface LedgerDependencies extends ClaimDependencies {
  readonly instanceLeases: InstanceLeases;
  /** Puts what a dead instance was sending in doubt. */
  readonly markOrphaned: (id: string, raw: string, entry: SendingEntry) => Promise<void>;
}

const inFlight = { kind: 'running' } as const;

/** How much longer than the request's deadline a claim lives that nobody takes back. Milliseconds. */
const claimMarginMs = 10_000;

export function createLedger(parts: LedgerDependencies, { lateAnswer, window }: LedgerSettings): Ledger {
  const { store, instanceLeases, pendingWrites, markOrphaned } = parts;

  async function find(identity: RequestIdentity, request: PisRequest): Promise<ClaimResult> {
    const { id, fingerprint } = identity;
    const leftMs = Math.max(0, request.deadlineAtMs - performance.now());
    const own = claimedEntry(request, { fingerprint, attempt: randomUUID(), holder: instanceLeases.ownId });
    const ttlMs = leftMs + claimMarginMs;
    const ours = (): ClaimResult => {
      const listenMs = leftMs + lateAnswer;
      return {
        kind: 'free',
        claim: createClaim(parts, { id, entry: own, lateAnswerMs: listenMs, windowMs: window }),
      };
    };
    const giveBack = (thrown: unknown) => releaseUncertain(id, own, ttlMs, thrown);

    const claimExisting = async (): Promise<ClaimResult> => {
      const stored = await store.read(id);
      if (!stored) {
        // It was given back in between. Redis may show that for longer than it should: a replica's clock can be behind.
        if (await store.replaceReleased(id, own, ttlMs).catch(giveBack)) return ours();
        return find(identity, request);
      }
      const { raw, entry } = stored;
      if (!entry) return { kind: 'in-doubt' };
      if (entry.fingerprint !== fingerprint) return { kind: 'another-request' };
      if (entry.step !== 'claimed' && entry.step !== 'sending') return finishedResult(entry);
      if (await instanceLeases.isAlive(entry.holder)) return inFlight;
      if (entry.step === 'sending') await markOrphaned(id, raw, entry);
      else if (await store.replace(id, raw, own, ttlMs).catch(giveBack)) return ours();
      return find(identity, request);
    };

    await instanceLeases.register();
    if (await store.create(id, own, ttlMs).catch(giveBack)) return ours();
    return claimExisting().catch(() => inFlight); // there is one, and no more can be known now
  }

  /** The state has perhaps taken a claim that nobody will carry out: it is told so as long as that could be in the way. */
  function releaseUncertain(id: string, own: ClaimedEntry, ttlMs: number, thrown: unknown): never {
    const isOverAtMs = performance.now() + ttlMs;
    void pendingWrites.addAndFlush(`claim ${own.attempt}`, async () => {
      if (performance.now() < isOverAtMs) await store.release(id, serializeEntry(own));
    });
    throw thrown;
  }

  return { claim: find };
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
