/** The spans of a request, made of its trail when it is over: one for the request, one for each thing it waited for. */

import type { CallEvent, TimedEvent } from '../request/request-events.ts';
import type { RequestRecord } from './request-record.ts';
import type { Trace } from './traceparent.ts';

/** A span, whoever it is sent to. Times in milliseconds since 1970. */
export interface SpanData {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  readonly traceId: string;
  /** A new one if it is nobody's parent. */
  readonly spanId: string | undefined;
  readonly parentId: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** All that is over when the request is. */
export function spansOf(decision: RequestRecord, trace: Trace): readonly SpanData[] {
  const { steps } = decision;
  return [
    requestSpan(decision, trace),
    ...steps.flatMap((step) => waitSpan(step, decision, trace)),
    ...(isCallFinished(steps) ? callSpan(decision, trace) : []),
  ];
}

/** What a call adds that is over only after the request. */
export function lateSpansOf(decision: RequestRecord, trace: Trace): readonly SpanData[] {
  return isCallFinished(decision.steps) ? callSpan(decision, trace) : [];
}

function requestSpan(decision: RequestRecord, { traceId, spanId, parentId }: Trace): SpanData {
  const {
    receivedAtMs,
    durationMs = 0,
    requestId = '',
    asked,
    environment,
    status,
    servedFrom,
    error,
  } = decision;
  return {
    name: asked?.operation ?? 'refused',
    kind: 'server',
    traceId,
    spanId,
    parentId,
    startMs: receivedAtMs,
    endMs: receivedAtMs + durationMs,
    failed: status >= 500,
    attributes: {
      'penstock.request_id': requestId,
      'http.response.status_code': status,
      ...(asked && { 'penstock.client': asked.client, 'penstock.tenant': asked.tenant }),
      ...(environment !== undefined && { 'penstock.environment': environment }),
      ...(servedFrom && { 'penstock.served_from': servedFrom }),
      ...(error && { 'error.type': error.code }),
      ...eventAttributes(decision.steps),
    },
  };
}

/** What takes no time worth a span. */
function eventAttributes(steps: readonly TimedEvent[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    steps.flatMap(({ event }) => {
      if (event.what === 'environment') return [['penstock.environment_why', event.why]];
      if (event.what === 'cache') return [['penstock.cache', event.verdict]];
      if (event.what === 'circuit-refused') return [['penstock.circuit', event.state]];
      return [];
    }),
  );
}

const waitNames: Readonly<Record<string, string>> = {
  ledger: 'wait for the ledger',
  turn: 'wait for a turn',
  'turn-refused': 'wait for a turn',
  'caller-left': 'wait for a turn',
};

function waitSpan(
  { afterMs, event }: TimedEvent,
  { receivedAtMs }: RequestRecord,
  { traceId, spanId }: Trace,
): readonly SpanData[] {
  if (!('waitedMs' in event)) return [];
  const { what, waitedMs } = event;
  const attributes = what === 'ledger' ? { 'penstock.verdict': event.verdict } : { 'penstock.outcome': what };
  const span = { kind: 'internal', traceId, spanId: undefined, parentId: spanId, attributes } as const;
  const endMs = receivedAtMs + afterMs;
  const failed = what !== 'ledger' && what !== 'turn';
  return [{ ...span, name: waitNames[what] ?? what, startMs: endMs - waitedMs, endMs, failed }];
}

/** From the first attempt to the end of the last: the bank is told of one span, however often it is asked. */
function callSpan({ receivedAtMs, steps, environment }: RequestRecord, trace: Trace): readonly SpanData[] {
  const calls = steps.flatMap(({ afterMs, event }) => (event.what === 'call' ? [{ afterMs, event }] : []));
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

/** A turn or a retry is followed by an attempt, which may outlive the request. */
function isCallFinished(steps: readonly TimedEvent[]): boolean {
  const last = steps.findLast(({ event }) => ['turn', 'retry', 'call'].includes(event.what));
  return last?.event.what === 'call';
}
