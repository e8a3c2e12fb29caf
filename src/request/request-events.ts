/** The events of one request, recorded by the stages. Log, metrics, spans and `/api/decisions` are made from them. */

import type { ErrorCode } from './errors.ts';

/** What the ledger contains for the `X-Request-ID` of a write. */
export type LedgerVerdict =
  /** Nothing: this request is executed. */
  | 'claimed'
  /** A response, which this request gets as well. */
  | 'replayed'
  /** The first request is still running, its outcome is unknown, or an operator has resolved it as happened. */
  | 'running'
  | 'in-doubt'
  | 'happened'
  /** A different request. */
  | 'another-request';

/** Why a request went to its environment. */
export type EnvironmentReason =
  | 'only-one'
  /** The payment was created there. */
  | 'affinity'
  | 'named'
  /** The client may use no other. */
  | 'only-one-of-client'
  | 'active';

/** How a status read was answered. `request`: the TPP asked for a fresh status; `bypass`: the response was not shared. */
export type CacheVerdict = 'hit' | 'stale' | 'shared' | 'miss' | 'request' | 'bypass';

/**
 * How the wait for another status ended: it changed; the time was over; the bank refused the read; the gateway drained; the TPP
 * disconnected.
 */
export type WaitOutcome = 'changed' | 'unchanged' | 'refused' | 'drained' | 'disconnected';

/**
 * A decision or an occurrence. It contains nothing that came with the request: no address, token or body. Times in milliseconds; a wait
 * ends when its event is recorded. The admin API shows names and values as they are here, except `payment`, and no log contains that one.
 */
export type RequestEvent =
  | { readonly what: 'ledger'; readonly verdict: LedgerVerdict; readonly waitedMs: number }
  | { readonly what: 'environment'; readonly environment: string; readonly why: EnvironmentReason }
  | { readonly what: 'cache'; readonly verdict: CacheVerdict }
  /** A status read has waited for a change. */
  | { readonly what: 'wait'; readonly outcome: WaitOutcome; readonly waitedMs: number }
  | { readonly what: 'circuit-refused'; readonly state: string }
  /** The rate limiter granted a permit. */
  | { readonly what: 'permit'; readonly waitedMs: number }
  | { readonly what: 'queue-refused'; readonly code: ErrorCode; readonly waitedMs: number }
  | { readonly what: 'client-disconnected'; readonly waitedMs: number }
  | CallEvent
  | { readonly what: 'retry'; readonly why: ErrorCode }
  /** The gateway cannot read the bank's response, which should show a status or a payment: a short reason. */
  | { readonly what: 'unreadable'; readonly why: string }
  /** What a repetition of the request gets: the response, a new attempt, or DUPLICATE_IN_DOUBT. */
  | { readonly what: 'recorded'; readonly as: 'answered' | 'released' | 'in-doubt' }
  /** The request or the bank's answer deviates from the standard: the rule and the path in the schema, never a value. */
  | {
      readonly what: 'deviation';
      readonly of: 'request' | 'response';
      readonly path: string;
      readonly rule: string;
      readonly level: string;
    }
  /** The code of the error that the bank has answered with. */
  | { readonly what: 'bank-error'; readonly code: string }
  /** The bank created this payment. */
  | { readonly what: 'payment'; readonly paymentId: string }
  /** The response of the bank arrived after the TPP got OUTCOME_UNKNOWN. */
  | { readonly what: 'late-answer'; readonly status: number };

/** One call to the bank, recorded at its end. Times from its beginning. */
export type CallEvent = {
  readonly what: 'call';
  readonly attempt: number;
  readonly connection: 'new' | 'reused' | 'none';
  readonly connectMs?: number;
  readonly firstByteMs?: number;
  readonly totalMs: number;
  /** The bank's status, or the error of the call. */
  readonly status?: number;
  readonly error?: ErrorCode;
};

/** Never throws, and costs well under a microsecond. */
export type RecordEvent = (event: RequestEvent) => void;

export interface TimedEvent {
  /** Milliseconds since the request was received. */
  readonly afterMs: number;
  readonly event: RequestEvent;
}
