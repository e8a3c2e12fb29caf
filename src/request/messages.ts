/** The values that travel down the line and back; none is ever changed in place. */

import type { HeaderFields } from '../pis/headers.ts';
import type { Operation } from '../pis/operations.ts';
import type { RecordEvent } from './request-events.ts';

/** Who asks: one system of the TPP platform. */
export interface Client {
  readonly name: string;
  /** Payments, cached answers and reservations of one tenant are invisible to every other. */
  readonly tenant: string;
  /** Names of the environments it may use; never none. */
  readonly environments: readonly string[];
}

/** What stands between a write and its first byte, so that the bank sees it once at most. */
export interface WriteAheadMark {
  /**
   * The last step before the first byte, taken when a connection is there.
   *
   * @param environment where the byte goes
   * @returns until when it may go: milliseconds of `performance.now()`; later, nothing may be sent any more
   * @throws GatewayError if nothing may be sent
   */
  markSending(environment: string): Promise<number>;
  /** Until when an answer is worth hearing, though the TPP has long been told: milliseconds of `performance.now()`. */
  readonly lateAnswerUntilMs: number;
}

/** A request that passed the door: one of the eight operations, well-formed, complete. */
export interface PisRequest {
  readonly operation: Operation;
  readonly client: Client;
  /** The caller's own `X-Request-ID`, as written. */
  readonly requestId: string;
  /** What `Penstock-Environment` asks for. */
  readonly requestedEnvironment?: string;
  /** End-to-end fields as the TPP sent them: neither framing nor anything meant for the gateway. */
  readonly headers: HeaderFields;
  /** The very bytes of the body; empty if there was none. */
  readonly body: Buffer;
  /** When the request came in, and when it must be answered: milliseconds of `performance.now()`. */
  readonly arrivedAtMs: number;
  readonly deadlineAtMs: number;
  /** Fires when the TPP leaves; a request that is on its way to the bank by then goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Of writes that must not be sent twice. */
  readonly writeAheadMark?: WriteAheadMark;
  /** Takes what the stages come to know of it; given by stage 1. */
  readonly recordEvent?: RecordEvent;
}

/** A request that knows its side of the bank. */
export interface RoutedRequest extends PisRequest {
  readonly environment: Environment;
}

/** An answer on its way back to the TPP. */
export interface PisResponse {
  readonly status: number;
  /** End-to-end fields, repetitions kept; framing is the door's business. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
  readonly servedFrom: 'bank' | 'cache' | 'stale-cache' | 'shared' | 'ledger';
  /** Name of the environment that the request was sent to. */
  readonly environment: string;
  /** How long the bank took, in milliseconds, if it was asked. */
  readonly upstreamMs?: number;
}

/** One side of the bank: where its API stands and which version of the standard it speaks. */
export interface Environment {
  /** As in the configuration: `sandbox`, `production`, or any other name. */
  readonly name: string;
  /** Scheme, host and port, as `URL.origin` gives them: `https://api.bank.example`. */
  readonly origin: string;
  /** What stands before the standard's segment: empty, or `/psd2` without a slash at its end. */
  readonly basePath: string;
  /** Version of the NextGenPSD2 XS2A framework, such as `1.3.11`. */
  readonly standardVersion: string;
}
