/** What another environment would do with the requests of this one: found by the contract guard, and asked for by a switch. */

export interface ContractComparison {
  readonly from: string;
  readonly to: string;
  /** How many requests were checked against the other contract. */
  readonly requests: number;
  /** The requested period: milliseconds since 1970. */
  readonly sinceMs: number;
  /** Requests before were not checked against this contract; `undefined` if none was. */
  readonly judgedSinceMs: number | undefined;
  /** Requests that were not checked, by reason. */
  readonly skipped: readonly { readonly reason: string; readonly count: number }[];
  /** Whether all requests of the period were checked. */
  readonly isComplete: boolean;
  /** What requests use that the other environment refuses, ignores, bounds or executes in another way; the worst first. */
  readonly differences: readonly ContractDifference[];
}

export interface ContractDifference {
  readonly operation: string;
  /** In the schema. */
  readonly path: string;
  readonly rule: string;
  readonly level: string;
  /** What the other environment would do. */
  readonly effect: string;
  readonly count: number;
  /** The most frequent first. */
  readonly clients: readonly { readonly client: string; readonly count: number }[];
  /** Milliseconds since 1970. */
  readonly lastMs: number;
  /** `X-Request-ID` of the last request. */
  readonly requestId: string;
  /**
   * Whether the contract of this environment refuses the requests as well. Of deviations that are not harmful: whether it has the same
   * one.
   */
  readonly isInBoth: boolean;
  /** Whether a switch must acknowledge it. */
  readonly mustAcknowledge: boolean;
}
