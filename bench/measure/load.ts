/** What is sent, how fast, and what came of it. */

/** What is sent, over and over; a POST with a new X-Request-ID each time. */
export interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** `closed`: each connection asks again when it is answered. `open`: at a fixed rate, however slow the answers. */
export type Pressure =
  | { readonly kind: 'closed'; readonly connections: number }
  | { readonly kind: 'open'; readonly perSecond: number };

/** One run, as counted by who sent the requests. */
export interface Load {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers that are none or above 399, and connections refused, broken, or timed out. */
  readonly errors: number;
}

/** Such as `32 connections`. */
export const nameOf = (pressure: Pressure): string =>
  pressure.kind === 'closed'
    ? `${pressure.connections} connections`
    : `${pressure.perSecond} requests a second`;
