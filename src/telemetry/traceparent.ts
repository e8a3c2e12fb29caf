/**
 * Continues the trace that a caller names in `traceparent`, or starts one.
 * @see W3C Trace Context, https://www.w3.org/TR/trace-context/
 */

import { randomBytes } from 'node:crypto';
import { type HeaderFields, headerValues, withField, withoutFields } from '../pis/headers.ts';

/** Ids in lower-case hexadecimal: the trace's has 32 digits, the others have 16. */
export interface Trace {
  readonly traceId: string;
  /** The caller's span; `undefined` if the caller sent no valid `traceparent`. */
  readonly parentId: string | undefined;
  /** The span of this request. */
  readonly spanId: string;
  /** The span of its call to the bank, sent to the bank as the parent. */
  readonly upstreamSpanId: string;
  readonly sampled: boolean;
}

/** The trace of a request, and the headers that replace those received. */
export interface StartedTrace {
  readonly trace: Trace;
  readonly headers: HeaderFields;
}

/**
 * Keeps the caller's trace and its decision on sampling.
 *
 * @param sample fraction of the requests without a caller's decision that are sampled, 0 to 1
 */
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
  // tracestate belongs to the caller's trace, and is dropped together with it (section 3.3).
  const kept = caller ? fields : withoutFields(fields, traceState);
  const { traceId, upstreamSpanId, sampled } = trace;
  return {
    trace,
    headers: withField(kept, ['traceparent', `00-${traceId}-${upstreamSpanId}-${sampled ? '01' : '00'}`]),
  };
}

const traceState: ReadonlySet<string> = new Set(['tracestate']);

/** Of a later version, only the first four parts are read (section 3.2.4). */
const traceparentPattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

function parseTraceparent(fields: HeaderFields) {
  const [value = '', ...more] = headerValues(fields, 'traceparent');
  const [, version, traceId, spanId, flags = '', rest] = traceparentPattern.exec(value.trim()) ?? [];
  if (traceId === undefined || spanId === undefined || more.length > 0) return undefined;
  if (version === '00' && rest !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
