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
