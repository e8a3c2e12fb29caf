/** The record of one finished request, from which log lines, metrics, statistics and spans are made. */

import { type Lane, type OperationName, productOf } from '../pis/operations.ts';
import { type ErrorCode, errorTable, type GatewayError } from '../request/errors.ts';
import { recordedTenantOf } from '../request/identities.ts';
import type { Client, Meaning, PisRequest, PisResponse } from '../request/messages.ts';
import type { RequestEvent, TimedEvent } from '../request/request-events.ts';
import { safeStack } from './log.ts';
import type { Trace } from './traceparent.ts';

/** Contains no address, token, body, or header value other than `X-Request-ID`. No log contains the ids of payments. */
export interface RequestRecord {
  /** Identifies it on this instance: a later one has a greater number. */
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** Milliseconds, without `waitedMs`; `undefined` for input that is not an HTTP request. */
  readonly durationMs: number | undefined;
  /** How long a status read has waited for a change. Milliseconds; `undefined` for nearly all requests. */
  readonly waitedMs?: number | undefined;
  readonly requestId: string | undefined;
  /** `undefined` for a request that was refused before it reached the pipeline. */
  readonly request: RequestSummary | undefined;
  /** The client of a request that was refused after the client was identified; otherwise see `request`. */
  readonly refusedClient?: RefusedClient | undefined;
  /** Network of the client; only for a refused request, and only if it is known. */
  readonly network: string | undefined;
  readonly environment: string | undefined;
  readonly status: number;
  /** `undefined` for an error that the gateway generated. */
  readonly servedFrom: PisResponse['servedFrom'] | undefined;
  readonly upstreamMs: number | undefined;
  /** What the answer of the bank to a write means. */
  readonly outcome?: Meaning['outcome'] | undefined;
  /** Set if the gateway generated an error. */
  readonly error: RequestFailure | undefined;
  /** In order. Events that follow the end of the request are still added. */
  readonly events: readonly TimedEvent[];
  /** `undefined` if tracing is off, and for a refused request. */
  readonly trace: Trace | undefined;
}

/** Which operation was requested by whom. */
export interface RequestSummary {
  readonly operation: OperationName;
  readonly lane: Lane;
  readonly client: string;
  /** Its configured name. */
  readonly tenant: string;
  /** Its identity, for stored records: see `recordedTenantOf`. */
  readonly tenantId: string;
  /** Service and product, such as `payments/sepa-credit-transfers`. */
  readonly product: string;
  /** In the path. */
  readonly paymentId: string | undefined;
}

/** A request that has not ended. */
export interface RunningRequest {
  readonly request: PisRequest;
  /** The same array as in its record. */
  readonly events: readonly TimedEvent[];
}

/** The client of a request that was refused. Tenant and identity as in `RequestSummary`. */
export interface RefusedClient extends Pick<Client, 'name' | 'tenant'> {
  readonly tenantId: string;
}

/** As in stored records; empty if it is unknown. */
export const tenantIdOf = ({ request, refusedClient }: RequestRecord): string =>
  request?.tenantId ?? refusedClient?.tenantId ?? '';

/** Why the gateway itself failed a request. */
export interface RequestFailure {
  readonly code: ErrorCode;
  readonly why: string;
  readonly proxyError: string;
  /** Whether it concerns only the tenant of the request. */
  readonly isOfTenant: boolean;
  /** Of an internal error: see `safeStack`. */
  readonly stack: string | undefined;
}

/** Observers are synchronous and never throw. */
export interface RequestObserver {
  /** Called for each request that reaches the pipeline. */
  onRequestStart?(running: RunningRequest): void;
  /** Called once for each request, when its response was handed over. */
  onRequestEnd(record: RequestRecord): void;
  /** Called for each event that follows the end of the request. */
  onLateEvent?(event: RequestEvent, record: RequestRecord): void;
}

/** Calls all observers, in order. */
export const combineObservers = (observers: readonly RequestObserver[]): Required<RequestObserver> => ({
  onRequestStart(running) {
    for (const observer of observers) observer.onRequestStart?.(running);
  },
  onRequestEnd(record) {
    for (const observer of observers) observer.onRequestEnd(record);
  },
  onLateEvent(event, record) {
    for (const observer of observers) observer.onLateEvent?.(event, record);
  },
});

let lastNumber = 0;

/** What is collected while a request runs. */
type CollectedData = Pick<RequestRecord, 'events' | 'trace'>;

export function recordOfResponse(
  request: PisRequest,
  response: PisResponse,
  { events, trace }: CollectedData,
): RequestRecord {
  const { environment, status, servedFrom, upstreamMs } = response;
  const totalMs = performance.now() - request.arrivedAtMs;
  const { waitedMs } = request;
  return {
    number: ++lastNumber,
    receivedAtMs: Date.now() - totalMs,
    durationMs: waitedMs === undefined ? totalMs : totalMs - waitedMs,
    waitedMs,
    requestId: request.requestId,
    request: summaryOf(request),
    refusedClient: undefined,
    network: undefined,
    environment,
    status,
    servedFrom,
    upstreamMs,
    outcome: response.meaning?.outcome,
    error: undefined,
    events,
    trace,
  };
}

export function recordOfFailure(
  request: PisRequest,
  error: GatewayError,
  { events, trace }: CollectedData,
): RequestRecord {
  const totalMs = performance.now() - request.arrivedAtMs;
  const { waitedMs } = request;
  return {
    number: ++lastNumber,
    receivedAtMs: Date.now() - totalMs,
    durationMs: waitedMs === undefined ? totalMs : totalMs - waitedMs,
    waitedMs,
    requestId: request.requestId,
    request: summaryOf(request),
    refusedClient: undefined,
    network: undefined,
    environment: error.environment,
    status: errorTable[error.code].status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: failureOf(error),
    events,
    trace,
  };
}

/** For what was refused before it reached the pipeline. @param arrivedAtMs milliseconds of `performance.now()` */
export function recordOfRefusal(
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
  refusedClient?: RefusedClient,
): RequestRecord {
  const durationMs = arrivedAtMs === undefined ? undefined : performance.now() - arrivedAtMs;
  return {
    number: ++lastNumber,
    receivedAtMs: Date.now() - (durationMs ?? 0),
    durationMs,
    waitedMs: undefined,
    requestId,
    request: undefined,
    refusedClient,
    network,
    environment: error.environment,
    status: errorTable[error.code].status,
    servedFrom: undefined,
    upstreamMs: undefined,
    error: failureOf(error),
    events: [],
    trace: undefined,
  };
}

const summaryOf = ({ operation, client, identities }: PisRequest): RequestSummary => ({
  operation: operation.name,
  lane: operation.lane,
  client: client.name,
  tenant: client.tenant,
  tenantId: recordedTenantOf(client.tenant, identities),
  product: productOf(operation),
  paymentId: operation.paymentId,
});

const failureOf = ({ code, message, proxyError, isOfTenant, cause }: GatewayError): RequestFailure => ({
  code,
  why: message,
  proxyError,
  isOfTenant,
  stack: code === 'INTERNAL' ? safeStack(cause) : undefined,
});

/** Durations are shown with one decimal. */
export const roundMs = (ms: number): number => Math.round(ms * 10) / 10;

/** The code of the last error that the bank has answered with. */
export const bankErrorOf = ({ events }: Pick<RequestRecord, 'events'>): string | undefined =>
  lastEvent(events, 'bank-error')?.code;

type EventOf<What> = Extract<RequestEvent, { readonly what: What }>;

/** The last event of a kind. */
export function lastEvent<const What extends RequestEvent['what']>(
  events: readonly TimedEvent[],
  what: What,
): EventOf<What> | undefined {
  const isWanted = (event: RequestEvent): event is EventOf<What> => event.what === what;
  for (let index = events.length - 1; index >= 0; index -= 1) {
    const event = events[index]?.event;
    if (event && isWanted(event)) return event;
  }
  return undefined;
}
