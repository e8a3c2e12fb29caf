/** The spans of a finished request, made from its record: the request, each wait, and the call to the bank. */

import type { CallEvent, RequestEvent, TimedEvent } from '../request/request-events.ts';
import type { RequestRecord } from './request-record.ts';
import type { Trace } from './traceparent.ts';

/** A span, independent of any exporter. Times in milliseconds since 1970. */
export interface SpanData {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  readonly traceId: string;
  /** `undefined` for a span without children: the exporter chooses an id. */
  readonly spanId: string | undefined;
  readonly parentId: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** The spans that have ended when the request ends. */
export function spansOf(record: RequestRecord, trace: Trace): readonly SpanData[] {
  const { events } = record;
  return [
    requestSpan(record, trace),
    ...events.flatMap((event) => waitSpan(event, record, trace)),
    ...(isCallFinished(events) ? callSpan(record, trace) : []),
  ];
}

/** The span of a call that ends after its request. */
export function lateSpansOf(record: RequestRecord, trace: Trace): readonly SpanData[] {
  return isCallFinished(record.events) ? callSpan(record, trace) : [];
}

function requestSpan(record: RequestRecord, { traceId, spanId, parentId }: Trace): SpanData {
  const { receivedAtMs, durationMs = 0, waitedMs = 0, requestId = '', request } = record;
  const { environment, status, servedFrom, error, events } = record;
  return {
    name: request?.operation ?? 'refused',
    kind: 'server',
    traceId,
    spanId,
    parentId,
    startMs: receivedAtMs,
    endMs: receivedAtMs + durationMs + waitedMs,
    failed: status >= 500,
    attributes: {
      'penstock.request_id': requestId,
      'http.response.status_code': status,
      ...(request && { 'penstock.client': request.client, 'penstock.tenant': request.tenant }),
      ...(environment !== undefined && { 'penstock.environment': environment }),
      ...(servedFrom && { 'penstock.served_from': servedFrom }),
      ...(error && { 'error.type': error.code }),
      ...eventAttributes(events),
    },
  };
}

/** Attributes for the events that take no time worth a span. */
function eventAttributes(events: readonly TimedEvent[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    events.flatMap(({ event }) => {
      if (event.what === 'environment') return [['penstock.environment_why', event.why]];
      if (event.what === 'cache') return [['penstock.cache', event.verdict]];
      if (event.what === 'circuit-refused') return [['penstock.circuit', event.state]];
      return [];
    }),
  );
}

const waitNames: Readonly<Record<string, string>> = {
  ledger: 'wait for the ledger',
  permit: 'wait in the queue',
  'queue-refused': 'wait in the queue',
  'client-disconnected': 'wait in the queue',
  wait: 'wait for a change',
};

function waitSpan(
  { afterMs, event }: TimedEvent,
  { receivedAtMs }: RequestRecord,
  { traceId, spanId }: Trace,
): readonly SpanData[] {
  if (!('waitedMs' in event)) return [];
  const { what, waitedMs } = event;
  const endMs = receivedAtMs + afterMs;
  return [
    {
      name: waitNames[what] ?? what,
      kind: 'internal',
      traceId,
      spanId: undefined,
      parentId: spanId,
      startMs: endMs - waitedMs,
      endMs,
      failed: what !== 'ledger' && what !== 'permit' && what !== 'wait',
      attributes: waitAttributes(event),
    },
  ];
}

function waitAttributes(event: RequestEvent): Readonly<Record<string, string>> {
  if (event.what === 'ledger') return { 'penstock.verdict': event.verdict };
  return { 'penstock.outcome': event.what === 'wait' ? event.outcome : event.what };
}

/** One span for all attempts, because `traceparent` gives the bank the same parent in each. */
function callSpan({ receivedAtMs, events, environment }: RequestRecord, trace: Trace): readonly SpanData[] {
  const calls = events.flatMap(({ afterMs, event }) => (event.what === 'call' ? [{ afterMs, event }] : []));
  const [first, last] = [calls[0], calls.at(-1)];
  if (!first || !last) return [];
  const { traceId, upstreamSpanId, spanId } = trace;
  return [
    {
      name: 'call the bank',
      kind: 'client',
      traceId,
      spanId: upstreamSpanId,
      parentId: spanId,
      startMs: receivedAtMs + first.afterMs - first.event.totalMs,
      endMs: receivedAtMs + last.afterMs,
      failed: last.event.error !== undefined || (last.event.status ?? 0) >= 500,
      attributes: {
        ...(environment !== undefined && { 'penstock.environment': environment }),
        'penstock.attempts': calls.length,
        ...callAttributes(last.event),
      },
    },
  ];
}

const callAttributes = ({ connection, connectMs, firstByteMs, status, error }: CallEvent) => ({
  'penstock.connection': connection,
  ...(connectMs !== undefined && { 'penstock.connect_ms': connectMs }),
  ...(firstByteMs !== undefined && { 'penstock.first_byte_ms': firstByteMs }),
  ...(status !== undefined && { 'http.response.status_code': status }),
  ...(error !== undefined && { 'error.type': error }),
});

/** A permit or a retry precedes an attempt, which may end after its request. */
function isCallFinished(events: readonly TimedEvent[]): boolean {
  const last = events.findLast(({ event }) => ['permit', 'retry', 'call'].includes(event.what));
  return last?.event.what === 'call';
}
