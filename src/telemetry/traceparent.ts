/**
 * Which trace a request belongs to, as `traceparent` says it.
 * @see W3C Trace Context, https://www.w3.org/TR/trace-context/
 */

import { randomBytes } from 'node:crypto';
import { type HeaderFields, headerValues, withField, withoutFields } from '../pis/headers.ts';

/** Ids in lower-case hexadecimal. */
export interface Trace {
  /** 32 digits; the others 16. */
  readonly traceId: string;
  /** The caller's span, if the caller traces. */
  readonly parentId: string | undefined;
  /** The span of this request. */
  readonly spanId: string;
  /** The span of its call to the bank, which the bank is told. */
  readonly upstreamSpanId: string;
  readonly sampled: boolean;
}

/** A request's trace, and the fields to send on instead of those that came. */
export interface StartedTrace {
  readonly trace: Trace;
  readonly headers: HeaderFields;
}

/** Goes on with the caller's trace, and with the caller's decision on sampling; begins one if there is none. */
export function startTrace(fields: HeaderFields, sample: number): StartedTrace {
  const caller = parseTraceparent(fields);
  const random = randomBytes(32).toString('hex');
  const trace = {
    traceId: caller?.traceId ?? random.slice(0, 32),
    parentId: caller?.spanId,
    spanId: random.slice(32, 48),
    upstreamSpanId: random.slice(48),
    sampled: caller?.sampled ?? Math.random() < sample,
  };
  // What other vendors noted in tracestate belongs to the trace that was given up (section 3.3).
  const kept = caller ? fields : withoutFields(fields, traceState);
  const { traceId, upstreamSpanId, sampled } = trace;
  return {
    trace,
    headers: withField(kept, ['traceparent', `00-${traceId}-${upstreamSpanId}-${sampled ? '01' : '00'}`]),
  };
}

const traceState: ReadonlySet<string> = new Set(['tracestate']);

/** Of a later version the first four parts are read, and the rest is not understood (section 3.2.4). */
const traceparentPattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

function parseTraceparent(fields: HeaderFields) {
  const [value = '', ...more] = headerValues(fields, 'traceparent');
  const [, version, traceId, spanId, flags = '', rest] = traceparentPattern.exec(value.trim()) ?? [];
  if (traceId === undefined || spanId === undefined || more.length > 0) return undefined;
  if (version === '00' && rest !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
