/** What became of one request, told once at its end: the log, the metrics, the figures and the traces are made of it. */

import { type ErrorCode, type GatewayError, kinds } from '../flow/errors.ts';
import type { PisRequest, PisResponse } from '../flow/messages.ts';
import type { Fact, Step } from '../flow/trail.ts';
import type { Lane, OperationName } from '../pis/operations.ts';
import { placeOf } from './place-of.ts';
import type { Trace } from './traceparent.ts';

/** What is known of who asked for what; nothing, of a request that was refused at the door. */
export interface Asked {
  readonly operation: OperationName;
  readonly lane: Lane;
  readonly client: string;
  readonly tenant: string;
}

/** Holds what the log may hold: no address, payment, token, body, or value of a header but `X-Request-ID`. */
export interface Decision {
  /** When the request came in: milliseconds since 1970. */
  readonly at: number;
  /** Milliseconds; unknown of what was no request at all. */
  readonly durationMs: number | undefined;
  readonly requestId: string | undefined;
  readonly asked: Asked | undefined;
  /** Of what was refused at the door: from which network it came, if that is known. */
  readonly network?: string;
  readonly environment: string | undefined;
  /** Of the answer, whoever made it. */
  readonly status: number;
  /** Of an answer that was not made here. */
  readonly servedFrom: PisResponse['servedFrom'] | undefined;
  readonly upstreamMs: number | undefined;
  /** Of an answer that was made here. */
  readonly error: Failure | undefined;
  /** As the stages noted them; facts that become known later are still added. */
  readonly steps: readonly Step[];
  /** If requests are traced, and it was one. */
  readonly trace: Trace | undefined;
}

/** Why the gateway itself failed a request. */
export interface Failure {
  readonly code: ErrorCode;
  readonly why: string;
  readonly proxyError: string;
  /** Of a fault of ours: what was thrown and where, never its message. */
  readonly stack?: string;
}

/** Whoever tells of requests. Nothing here fails or waits: it stands in the way of every answer. */
export interface Observer {
  /** Once for each request, at its end. */
  decided(decision: Decision): void;
  /** For each fact that becomes known after that. */
  later?(fact: Fact, decision: Decision): void;
}

/** One observer for all of them, in their order. */
export const toAll = (observers: readonly Observer[]): Required<Observer> => ({
  decided(decision) {
    for (const observer of observers) observer.decided(decision);
  },
  later(fact, decision) {
    for (const observer of observers) observer.later?.(fact, decision);
  },
});

/** What was kept of a request while it ran. */
export type Trail = Pick<Decision, 'steps' | 'trace'>;

/** Of a request that got an answer. */
export function answered(request: PisRequest, response: PisResponse, trail: Trail): Decision {
  const { environment, status, servedFrom, upstreamMs } = response;
  return { ...begun(request, trail), environment, status, servedFrom, upstreamMs, error: undefined };
}

/** Of a request that the gateway failed. */
export function failed(request: PisRequest, error: GatewayError, trail: Trail): Decision {
  return { ...begun(request, trail), ...failureOf(error) };
}

/** Of what was refused before it could become a request. @param arrivedAtMs milliseconds of `performance.now()` */
export function refused(
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
): Decision {
  const durationMs = arrivedAtMs === undefined ? undefined : performance.now() - arrivedAtMs;
  const at = Date.now() - (durationMs ?? 0);
  const from = network !== undefined && { network };
  return {
    at,
    durationMs,
    requestId,
    asked: undefined,
    ...from,
    steps: [],
    trace: undefined,
    ...failureOf(error),
  };
}

function begun({ requestId, operation, client, arrivedAtMs }: PisRequest, { steps, trace }: Trail) {
  const durationMs = performance.now() - arrivedAtMs;
  const { name, lane } = operation;
  const asked = { operation: name, lane, client: client.name, tenant: client.tenant };
  return { at: Date.now() - durationMs, durationMs, requestId, asked, steps, trace };
}

function failureOf({ code, message, environment, proxyError, cause }: GatewayError) {
  const stack = code === 'INTERNAL' && { stack: placeOf(cause) };
  return {
    environment,
    status: kinds[code].status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: { code, why: message, proxyError, ...stack },
  };
}
