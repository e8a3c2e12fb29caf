/** Requests, load profiles and the results of a run. */

/** The request that a run repeats; a POST has a new X-Request-ID each time. */
export interface BenchRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** `closed`: each connection sends the next request after a response. `open`: a fixed rate, independent of the responses. */
export type LoadProfile =
  | { readonly kind: 'closed'; readonly connections: number }
  | { readonly kind: 'open'; readonly perSecond: number };

/** The result of one run, as counted by the load generator. */
export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Missing responses, statuses above 399, and connections that were refused, broken or timed out. */
  readonly errors: number;
}

/** Such as `32 connections`. */
export const nameOfProfile = (profile: LoadProfile): string =>
  profile.kind === 'closed' ? `${profile.connections} connections` : `${profile.perSecond} requests a second`;
