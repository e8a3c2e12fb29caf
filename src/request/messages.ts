/** The context of a request, which travels through the pipeline, and the response, which returns through it. */

import type { HeaderFields } from '../pis/headers.ts';
import type { Operation, OperationName } from '../pis/operations.ts';
import type { BankIds } from './bank-ids.ts';
import type { GatewayError } from './errors.ts';
import type { Identities } from './identities.ts';
import type { RecordEvent } from './request-events.ts';

/** A client of the gateway: one system of a TPP. */
export interface Client {
  readonly name: string;
  /** Payments, cached responses and idempotency records of one tenant are invisible to all others. */
  readonly tenant: string;
  /** Names of the environments that it may use; at least one. */
  readonly environments: readonly string[];
  /** The environment of its new payments, whichever is active: only this one is configured for it. */
  readonly onlyEnvironment?: string | undefined;
}

/** Recorded before the first byte of a write is sent, so that the bank receives the write at most once. */
export interface WriteAheadMark {
  /**
   * Records the mark. To be called when the connection is established, as the last step before the first byte.
   *
   * @param environment that the request is sent to
   * @returns when the first byte may be sent. Rejects with a GatewayError if nothing may be sent
   */
  markSending(environment: string): Promise<SendWindow>;
  /** Answers the TPP with OUTCOME_UNKNOWN. To be called when the deadline passes after the first byte was sent. */
  onDeadline(): void;
  /** To be called with what the bank's response to an initiation names, before the response is passed on. */
  namePayment(named: NamedPayment): void;
  /** How long after the deadline a response is recorded, although the TPP already has an error. Milliseconds. */
  readonly lateAnswerMs: number;
  /** Whether the bank has answered an earlier attempt with this X-Request-ID that it had not processed the request. */
  readonly followsReleasedAttempt: boolean;
}

/** Until when the first byte may be sent, on two clocks: while a process is suspended, one of them may stand still. */
export interface SendWindow {
  /** Milliseconds of `performance.now()`. */
  readonly untilMs: number;
  /** Milliseconds since 1970. */
  readonly untilWallMs: number;
}

/** The payment in the bank's response to an initiation. The response is withheld if it belongs, or may belong, to another tenant. */
export interface NamedPayment {
  /** `undefined` if the response is in doubt, and names none. */
  readonly created:
    | {
        readonly paymentId: string;
        /** Service and product of the initiation. */
        readonly initiatedAs: string;
        /** JSON. */
        readonly bankIds: string | undefined;
        readonly isPermanent: boolean;
      }
    | undefined;
  /** Called when it is stored as that of the tenant. */
  readonly onStored?: () => void;
  /** The error in place of the response. Counts and logs it. */
  readonly withheld: () => GatewayError;
}

/** A permit to call the bank, requested before its request is ready to be sent. */
export interface RequestedPermit {
  /** The name of the environment that it is for. */
  readonly environment: string;
  /** Uses the permit, if it was granted and is still kept. @returns whether it is used now; if not, the call needs another one */
  take(): boolean;
  /** Gives the permit up: it goes to a call that waits, or back to the bucket. Has no effect if it was used. */
  release(): void;
}

/** Reports that the TPP has disconnected. Contains the members of `AbortSignal` that the stages use. */
export interface DisconnectSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * The context of one complete and valid request: one object with all slots, created once. Stages fill the slots that are not
 * readonly, and do not copy the object.
 *
 * A request ends with the response to the TPP. Later events, such as a late response of the bank, are recorded in the ledger or
 * by `recordEvent`, never here.
 */
export interface PisRequest {
  readonly operation: Operation;
  readonly client: Client;
  /** The client's own `X-Request-ID`, as it was sent. */
  readonly requestId: string;
  /**
   * Whether it has a field with which a status read is conditional or waits: `If-None-Match`, `Prefer`, or an `Accept` that
   * prefers events. Most requests have none, and are not searched for them.
   */
  readonly mayListen?: boolean | undefined;
  /** Whether a status read prefers a stream of server-sent events. */
  readonly wantsEvents?: boolean | undefined;
  /** Only for reads of the gateway itself: an older cached status does not answer them. Milliseconds. */
  readonly maxCachedAgeMs?: number | undefined;
  /** Value of `Penstock-Environment`. */
  readonly requestedEnvironment?: string | undefined;
  /** End-to-end fields as the TPP sent them, without framing and without fields for the gateway. Stage 1 may set the trace. */
  headers: HeaderFields;
  /** As `headers`, but no stage changes it. `undefined` for requests that no TPP has sent. */
  readonly tppHeaders?: HeaderFields | undefined;
  /** The bytes of the body; empty if there is none, and after the response was sent. */
  body: Buffer;
  /** When the request was received: milliseconds of `performance.now()`. */
  readonly arrivedAtMs: number;
  /**
   * When the request must be answered: milliseconds of `performance.now()`. Before stage 4 it is the latest deadline of all
   * environments: a claim in the ledger must not expire before the request.
   */
  deadlineAtMs: number;
  /**
   * Aborts when the TPP disconnects. A request that is already being sent to the bank continues. `undefined` if the request
   * continues in any case.
   */
  signal?: DisconnectSignal | undefined;
  /**
   * The check of the client's quota, while the shared state is still being asked. Rejects with QUOTA_EXCEEDED. A stage that is
   * about to answer or to send the request awaits it first: see `whenAdmitted`.
   */
  quota?: Promise<void> | undefined;
  /** How long it has waited for a change of the status, without the time of reading it. Milliseconds. */
  waitedMs?: number | undefined;
  /** Set by stage 1. Does not refer to the request: a call that ends late can record events without keeping the request. */
  recordEvent?: RecordEvent | undefined;
  /** Set by stage 2. */
  identities?: Identities | undefined;
  /**
   * Set before stage 3, only for writes. Stage 3 calls it when it claims the `X-Request-ID`. It sends commands of later stages to
   * the shared state in the same tick, so that they share the round trip of the claim.
   */
  onClaim?: ((request: PisRequest) => void) | undefined;
  /** Set by stage 3: the environment that was active when it claimed the `X-Request-ID`; none in a new database. */
  activeEnvironment?: string | undefined;
  /** Set by `onClaim`, stage 4 or stage 5, if a permit was requested in advance. Released when the request ends. */
  permit?: RequestedPermit | undefined;
  /** Set by stage 3. Only for writes, which must not be sent twice. */
  writeAheadMark?: WriteAheadMark | undefined;
  /** Set by stage 4: see `RoutedRequest`. */
  environment?: Environment | undefined;
  /** Set by stage 4: recorded ids of the payment, for its path at the bank. */
  bankIds?: BankIds | undefined;
  /** Set by stage 4: the cached status, if its read was started there. Only stage 5 can use it. */
  prefetched?: object | undefined;
  /**
   * Only for reads of the gateway itself: awaited before the bank is asked, and not if another response can be used. Rejects with a
   * GatewayError if the bank must not be asked.
   */
  readonly beforeCall?: (() => Promise<void>) | undefined;
  /** Set by stage 5. Called when the request is written to a connection of the bank, and again if it is sent once more. */
  onSent?: (() => void) | undefined;
}

/** A request whose environment is chosen. */
export interface RoutedRequest extends PisRequest {
  readonly environment: Environment;
}

/** What the bank's answer to a write means: see `meaningOf`. */
export interface Meaning {
  /**
   * `accepted`: the bank has executed the write. `refused`: it has not, and its answer is final. `released`: it has not processed the
   * write, which may be sent again. `in-doubt`: the answer leaves open what the bank has done. `failed`: likewise, for a 5xx, which
   * repeats get as well.
   */
  readonly outcome: 'accepted' | 'refused' | 'released' | 'in-doubt' | 'failed';
  /** The payment that an initiation has created; `undefined` if the answer names none, and for other operations. */
  readonly paymentId: string | undefined;
  /** For operators: why the outcome is in doubt or failed. Quotes nothing of the body. */
  readonly why: string | undefined;
}

export interface PisResponse {
  readonly status: number;
  /** End-to-end fields, with repetitions and without framing. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
  /** The body without its content coding, and before its links were rewritten; `undefined` if it was not parsed. */
  readonly json?: unknown;
  /** What the bank's answer to a write means. `undefined` for reads, and for responses of the ledger. */
  readonly meaning?: Meaning | undefined;
  readonly servedFrom: 'bank' | 'cache' | 'stale-cache' | 'shared' | 'ledger';
  /** Name of the environment that the request was sent to. */
  readonly environment: string;
  /** Ids in the response that must be recorded, so that the gateway accepts them. */
  readonly bankIds?: BankIds | undefined;
  /** The public URL that links of the bank were rewritten to, if there were any. */
  readonly publicUrl?: string | undefined;
  /** Response time of the bank in milliseconds, if it was called. */
  readonly upstreamMs?: number;
  /** What follows the head in place of `body`, until it ends. */
  readonly stream?: ResponseStream;
}

/** A response without a known end. */
export interface ResponseStream {
  /** Called once, when the head is sent. */
  start(sink: StreamSink): void;
}

/** The connection of a response without a known end. */
export interface StreamSink {
  /** Sends text. Disconnects a client that has not read what was sent before. */
  write(text: string): void;
  /** Disconnects a client that has not read all that was sent. @returns whether it has */
  isRead(): boolean;
  /** Ends the response. */
  end(): void;
}

/** An environment of the bank: where its API is, and which version of the standard it implements. */
export interface Environment {
  /** As configured: `sandbox`, `production`, or any other name. */
  readonly name: string;
  /** Scheme, host and port, as in `URL.origin`: `https://api.bank.example`. */
  readonly origin: string;
  /** The path before the standard's segment: empty, or such as `/psd2`, without a slash at the end. */
  readonly basePath: string;
  /**
   * The whole path at the bank before `/{payment-service}`, by operation, without a slash at the end: `/psd2/berlingroup/v1`. A bank
   * may version its operations separately.
   */
  readonly prefixes: Readonly<Record<OperationName, string>>;
  /** The names of the query parameters that a TPP may send to this environment. */
  readonly queryParameters: 'any' | readonly string[];
  /** Query parameters that the gateway adds, as configured: a text, or where its value is. */
  readonly query: Readonly<Record<string, unknown>>;
  /** The fields of the TPP, in lower case, that select the bank or authorise: part of cache keys, and kept for polls. */
  readonly callerHeaders: readonly string[];
  /** Further fields of the TPP that are kept for polls, in lower case. */
  readonly pollHeaders: readonly string[];
  /** Version of the NextGenPSD2 XS2A framework, such as `1.3.11`. */
  readonly standardVersion: string;
}
