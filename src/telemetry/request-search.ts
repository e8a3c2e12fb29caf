/** The search in the stored records of requests, of all instances. */

import type { RequestReport } from './recent-requests.ts';

/** A request as the admin API reports it, with the name of its tenant. */
export interface StoredRequest extends RequestReport {
  /** The instance that served it, as its log lines name it. */
  readonly instance: string;
}

/** Which requests: all conditions must hold. */
export interface RequestQuery {
  /** The `X-Request-ID`, in any letter case. */
  readonly requestId?: string | undefined;
  /** The bank's id of the payment. */
  readonly payment?: string | undefined;
  /** Its name. */
  readonly tenant?: string | undefined;
  /** A code of the error table, the status of an error response of the bank such as `503`, or `any`. */
  readonly error?: string | undefined;
  /** Received at this time or later: milliseconds since 1970. */
  readonly fromMs: number;
  /** Received before this time: milliseconds since 1970. */
  readonly toMs: number;
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
   * The requests of one tenant with an `X-Request-ID`, at most about `limit`. Reads the same of the shared state whether other
   * tenants have used the id or not. Finds only requests that ended while `requests.selfService` was on.
   *
   * @throws GatewayError STATE_UNAVAILABLE
   */
  findOwn(tenantId: string, requestId: string, limit: number): Promise<SearchResult>;
}
