/** The result of comparing two environments: the contract guard computes it, and a switch requires it. */

export interface ContractComparison {
  readonly from: string;
  readonly to: string;
  /** How many requests were checked against the other contract. */
  readonly requests: number;
  /** The requested period: milliseconds since 1970. */
  readonly sinceMs: number;
  /** When the first request was checked against this contract; `undefined` if none was. */
  readonly judgedSinceMs: number | undefined;
  /** Requests that were not checked, by reason. */
  readonly skipped: readonly { readonly reason: string; readonly count: number }[];
  /** Whether all requests of the period were checked. */
  readonly isComplete: boolean;
  /** Deviations of the requests from the contract of the other environment; the worst first. */
  readonly differences: readonly ContractDifference[];
}

export interface ContractDifference {
  readonly operation: string;
  /** The path in the schema. */
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
   * Whether the contract of the first environment refuses the requests as well. For deviations that are not harmful: whether that
   * contract has the same deviation.
   */
  readonly isInBoth: boolean;
  /** Whether a switch must acknowledge it. */
  readonly mustAcknowledge: boolean;
}
