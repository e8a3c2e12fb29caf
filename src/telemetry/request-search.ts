/** What operators and TPPs see of a request, and the search in the records of all instances. */

import type { RecordConditions } from '../store/request-records.ts';

/** One request. Times in milliseconds. The tenant is named as it is configured. */
export interface StoredRequest {
  /** When it was received: RFC 3339. */
  readonly at: string;
  readonly xRequestId: string;
  /** These are `null` if the request was refused before they were known. */
  readonly operation: string | null;
  readonly client: string | null;
  readonly tenant: string | null;
  readonly environment: string | null;
  /** Service and product. */
  readonly product: string | null;
  /** In the path, or in the answer to an initiation. */
  readonly paymentId: string | null;
  /** `null` while it runs. */
  readonly status: number | null;
  readonly outcome: RequestOutcome;
  /** The code of an error that the bank has answered with. */
  readonly bankError?: string;
  readonly error?: string;
  readonly why?: string;
  readonly servedFrom?: string;
  readonly durationMs: number | null;
  /** The events of the request in order, each with `what` and its own fields. */
  readonly steps: readonly RequestStep[];
  /** The instance that served it, as its log lines name it. */
  readonly instance: string;
}

export type RequestStep = Readonly<Record<string, string | number>>;

/**
 * `refused-by-bank`: the bank answered 4xx, or rejected the payment. `failed`: the bank did not answer, or with 5xx. `refused`: by the
 * gateway. `in-doubt`: it is unknown what the bank has done.
 */
export const storedOutcomes = ['succeeded', 'refused-by-bank', 'failed', 'refused', 'in-doubt'] as const;
export const requestOutcomes = [...storedOutcomes, 'running'] as const;

/** Where an answer came from; errors of the gateway have none of these. */
export const answerSources = ['bank', 'cache', 'stale-cache', 'shared', 'ledger'] as const;

export type RequestOutcome = (typeof requestOutcomes)[number];

/** Which requests: all conditions must hold. */
export interface RequestQuery extends Omit<RecordConditions, 'paymentId' | 'tenants'> {
  /** The bank's id of the payment. */
  readonly payment?: string | undefined;
  /** Its name. */
  readonly tenant?: string | undefined;
  /** How many requests are returned at most; slightly more if several were received in the same millisecond. */
  readonly limit: number;
}

export interface SearchResult {
  /** Newest first. */
  readonly requests: readonly StoredRequest[];
  /**
   * `requests` contains all matching requests that were received since this time: milliseconds since 1970. A search with this as
   * `toMs` continues.
   */
  readonly searchedFromMs: number;
  /** Whether all of the queried time was searched. */
  readonly isComplete: boolean;
  /** Requests of the searched time, and of the queried tenant if there is one, of which no record was stored. */
  readonly notStored: number;
}

export interface RequestSearch {
  /** @throws GatewayError STATE_UNAVAILABLE */
  find(query: RequestQuery): Promise<SearchResult>;
  /**
   * The requests of one tenant with an `X-Request-ID`, at most about `limit`. Reads the same rows whether other tenants have used the id or
   * not.
   *
   * @throws GatewayError STATE_UNAVAILABLE
   */
  findOwn(tenantId: string, requestId: string, limit: number): Promise<SearchResult>;
}
