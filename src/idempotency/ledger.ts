/**
 * The ledger: one entry for each use of an `X-Request-ID` by a tenant.
 *
 *   (none) ---> claimed ---> sending ---> answered         Claimed and sending are given back if the bank was provably
 *                               \                           not reached. A claim of a dead instance is taken over; what
 *                                --> in-doubt ---> answered | happened | (none)        a dead instance sent is in doubt.
 */

import { randomUUID } from 'node:crypto';
import type { PisRequest } from '../flow/messages.ts';
import { type Claim, type ClaimParts, createClaim } from './claim.ts';
import {
  type Answered,
  type Claimed,
  claimed,
  type Entry,
  type Happened,
  type Sending,
  written,
} from './entry.ts';
import type { Identity } from './fingerprint.ts';
import type { Holders } from './holders.ts';

/** What there is of an `X-Request-ID`. */
export type Found =
  /** Nothing was: it is carried out by whoever has found that. */
  | { readonly kind: 'free'; readonly claim: Claim }
  | { readonly kind: 'another-request' }
  | { readonly kind: 'running' }
  | { readonly kind: 'answered'; readonly entry: Answered }
  | { readonly kind: 'happened'; readonly entry: Happened }
  /** Without environment if what is kept cannot be read. */
  | { readonly kind: 'in-doubt'; readonly environment?: string };

export interface Ledger {
  /** @throws GatewayError STATE_UNAVAILABLE if the state cannot be asked; nothing may be sent then */
  find(identity: Identity, request: PisRequest): Promise<Found>;
}

interface Terms {
  /** How long an answer is listened for after the deadline, and how long it is kept. Milliseconds. */
  readonly lateAnswer: number;
  readonly window: number;
}

interface Parts extends ClaimParts {
  readonly holders: Holders;
  /** Puts what a dead instance was sending in doubt. */
  readonly doubtOf: (id: string, raw: string, entry: Sending) => Promise<void>;
}

const running = { kind: 'running' } as const;

/** How much longer than the request's deadline a claim lives that nobody takes back. Milliseconds. */
const spareMs = 10_000;

export function createLedger(parts: Parts, { lateAnswer, window }: Terms): Ledger {
  const { entries, holders, owed, doubtOf } = parts;

  async function find(identity: Identity, request: PisRequest): Promise<Found> {
    const { id, fingerprint } = identity;
    const leftMs = Math.max(0, request.deadlineAtMs - performance.now());
    const own = claimed(request, { fingerprint, attempt: randomUUID(), holder: holders.own });
    const ttlMs = leftMs + spareMs;
    const ours = (): Found => {
      const listenMs = leftMs + lateAnswer;
      return { kind: 'free', claim: createClaim(parts, { id, entry: own, listenMs, windowMs: window }) };
    };
    const giveBack = (thrown: unknown) => takeBack(id, own, ttlMs, thrown);

    const first = async (): Promise<Found> => {
      const stored = await entries.read(id);
      if (!stored) {
        // It was given back in between. Redis may show that for longer than it should: a replica's clock can be behind.
        if (await entries.beginAgain(id, own, ttlMs).catch(giveBack)) return ours();
        return find(identity, request);
      }
      const { raw, entry } = stored;
      if (!entry) return { kind: 'in-doubt' };
      if (entry.fingerprint !== fingerprint) return { kind: 'another-request' };
      if (entry.step !== 'claimed' && entry.step !== 'sending') return settled(entry);
      if (await holders.isAlive(entry.holder)) return running;
      if (entry.step === 'sending') await doubtOf(id, raw, entry);
      else if (await entries.replace(id, raw, own, ttlMs).catch(giveBack)) return ours();
      return find(identity, request);
    };

    await holders.introduce();
    if (await entries.begin(id, own, ttlMs).catch(giveBack)) return ours();
    return first().catch(() => running); // there is one, and no more can be known now
  }

  /** The state has perhaps taken a claim that nobody will carry out: it is told so as long as that could be in the way. */
  function takeBack(id: string, own: Claimed, ttlMs: number, thrown: unknown): never {
    const isOverAtMs = performance.now() + ttlMs;
    void owed.now(`claim ${own.attempt}`, async () => {
      if (performance.now() < isOverAtMs) await entries.release(id, written(own));
    });
    throw thrown;
  }

  return { find };
}

function settled(entry: Exclude<Entry, { step: 'claimed' | 'sending' }>): Found {
  switch (entry.step) {
    case 'in-doubt':
      return { kind: 'in-doubt', environment: entry.environment };
    case 'answered':
      return { kind: 'answered', entry };
    case 'happened':
      return { kind: 'happened', entry };
  }
}
