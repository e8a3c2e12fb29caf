/** What the stages say of one request, as they come to know it: the trail from which everything told of it is made. */

import type { ErrorCode } from './errors.ts';

/** What the ledger knew of a write's `X-Request-ID`. */
export type LedgerVerdict =
  /** Nothing: this request is carried out. */
  | 'claimed'
  /** The answer that the first request got; the request gets the same. */
  | 'replayed'
  /** That the first request still runs, that nobody knows what became of it, that operators say it happened. */
  | 'running'
  | 'in-doubt'
  | 'happened'
  /** That it stood on another request. */
  | 'another-request'
  /** It could not be asked, and the request goes on, as `idempotency.ifStateFails` allows. */
  | 'unprotected';

/** Why a request went to its environment. */
export type EnvironmentReason =
  | 'only-one'
  /** The payment was born there. */
  | 'home'
  | 'named'
  /** The client may use no other. */
  | 'only-one-of-client'
  | 'active';

/** How a status read was answered; `request`: the TPP wanted the bank to be asked, `bypass`: for itself alone. */
export type CacheVerdict = 'hit' | 'stale' | 'shared' | 'miss' | 'request' | 'bypass';

/**
 * One thing that was decided or happened. Nothing in it came with the request: no address, id, token or body.
 * Times in milliseconds; a wait ends when its fact is noted.
 */
export type RequestEvent =
  | { readonly what: 'ledger'; readonly verdict: LedgerVerdict; readonly waitedMs: number }
  | { readonly what: 'environment'; readonly environment: string; readonly why: EnvironmentReason }
  | { readonly what: 'cache'; readonly verdict: CacheVerdict }
  | { readonly what: 'circuit-refused'; readonly state: string }
  /** Its turn at the bank came. */
  | { readonly what: 'turn'; readonly waitedMs: number }
  | { readonly what: 'turn-refused'; readonly code: ErrorCode; readonly waitedMs: number }
  | { readonly what: 'caller-left'; readonly waitedMs: number }
  | CallEvent
  /** It is sent once more. */
  | { readonly what: 'retry'; readonly why: ErrorCode }
  /** What a repeat will get: the answer, a new attempt, or word that nobody knows. */
  | { readonly what: 'recorded'; readonly as: 'answered' | 'released' | 'in-doubt' }
  /** The bank's answer came after the TPP had been told that the outcome is unknown. */
  | { readonly what: 'late-answer'; readonly status: number };

/** One attempt at the bank, noted when it is over. Times from its beginning. */
export interface CallEvent {
  readonly what: 'call';
  readonly attempt: number;
  readonly connection: 'new' | 'reused' | 'none';
  readonly connectMs?: number;
  readonly firstByteMs?: number;
  readonly totalMs: number;
  /** What the bank answered, or how the attempt failed. */
  readonly status?: number;
  readonly error?: ErrorCode;
}

/** Takes a fact into the trail of the request. It never fails, and costs well under a microsecond. */
export type RecordEvent = (fact: RequestEvent) => void;

/** A fact in the trail. */
export interface TimedEvent {
  /** Milliseconds since the request came in. */
  readonly afterMs: number;
  readonly event: RequestEvent;
}
