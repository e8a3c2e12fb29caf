/** What became of one request, told once at its end: the log, the metrics, the figures and the traces are made of it. */

import type { Lane, OperationName } from '../pis/operations.ts';
import { type ErrorCode, errorTable, type GatewayError } from '../request/errors.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { RequestEvent, TimedEvent } from '../request/request-events.ts';
import { safeStack } from './log.ts';
import type { Trace } from './traceparent.ts';

/** What is known of who asked for what; nothing, of a request that was refused at the door. */
export interface RequestSummary {
  readonly operation: OperationName;
  readonly lane: Lane;
  readonly client: string;
  readonly tenant: string;
}

/** Holds what the log may hold: no address, payment, token, body, or value of a header but `X-Request-ID`. */
export interface RequestRecord {
  /** When the request came in: milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** Milliseconds; unknown of what was no request at all. */
  readonly durationMs: number | undefined;
  readonly requestId: string | undefined;
  readonly asked: RequestSummary | undefined;
  /** Of what was refused at the door: from which network it came, if that is known. */
  readonly network?: string;
  readonly environment: string | undefined;
  /** Of the answer, whoever made it. */
  readonly status: number;
  /** Of an answer that was not made here. */
  readonly servedFrom: PisResponse['servedFrom'] | undefined;
  readonly upstreamMs: number | undefined;
  /** Of an answer that was made here. */
  readonly error: RequestFailure | undefined;
  /** As the stages noted them; facts that become known later are still added. */
  readonly steps: readonly TimedEvent[];
  /** If requests are traced, and it was one. */
  readonly trace: Trace | undefined;
}

/** Why the gateway itself failed a request. */
export interface RequestFailure {
  readonly code: ErrorCode;
  readonly why: string;
  readonly proxyError: string;
  /** Of a fault of ours: what was thrown and where, never its message. */
  readonly stack?: string;
}

/** Whoever tells of requests. Nothing here fails or waits: it stands in the way of every answer. */
export interface RequestObserver {
  /** Once for each request, at its end. */
  onRequestEnd(decision: RequestRecord): void;
  /** For each fact that becomes known after that. */
  onLateEvent?(fact: RequestEvent, decision: RequestRecord): void;
}

/** One observer for all of them, in their order. */
export const combineObservers = (observers: readonly RequestObserver[]): Required<RequestObserver> => ({
  onRequestEnd(decision) {
    for (const observer of observers) observer.onRequestEnd(decision);
  },
  onLateEvent(fact, decision) {
    for (const observer of observers) observer.onLateEvent?.(fact, decision);
  },
});

/** What was kept of a request while it ran. */
export type RecordedEvents = Pick<RequestRecord, 'steps' | 'trace'>;

/** Of a request that got an answer. */
export function recordOfResponse(
  request: PisRequest,
  response: PisResponse,
  trail: RecordedEvents,
): RequestRecord {
  const { environment, status, servedFrom, upstreamMs } = response;
  return { ...commonFields(request, trail), environment, status, servedFrom, upstreamMs, error: undefined };
}

/** Of a request that the gateway failed. */
export function recordOfFailure(
  request: PisRequest,
  error: GatewayError,
  trail: RecordedEvents,
): RequestRecord {
  return { ...commonFields(request, trail), ...failureFields(error) };
}

/** Of what was refused before it could become a request. @param arrivedAtMs milliseconds of `performance.now()` */
export function recordOfRefusal(
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
): RequestRecord {
  const durationMs = arrivedAtMs === undefined ? undefined : performance.now() - arrivedAtMs;
  const at = Date.now() - (durationMs ?? 0);
  const from = network !== undefined && { network };
  return {
    receivedAtMs: at,
    durationMs,
    requestId,
    asked: undefined,
    ...from,
    steps: [],
    trace: undefined,
    ...failureFields(error),
  };
}

function commonFields(
  { requestId, operation, client, arrivedAtMs }: PisRequest,
  { steps, trace }: RecordedEvents,
) {
  const durationMs = performance.now() - arrivedAtMs;
  const { name, lane } = operation;
  const asked = { operation: name, lane, client: client.name, tenant: client.tenant };
  return { receivedAtMs: Date.now() - durationMs, durationMs, requestId, asked, steps, trace };
}

function failureFields({ code, message, environment, proxyError, cause }: GatewayError) {
  const stack = code === 'INTERNAL' && { stack: safeStack(cause) };
  return {
    environment,
    status: errorTable[code].status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: { code, why: message, proxyError, ...stack },
  };
}
