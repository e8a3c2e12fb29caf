/** Exports spans by OTLP over HTTP. Only this file knows OpenTelemetry, which is loaded only if tracing is on. */

import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { BatchSpanProcessor, ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-node';
import type { TracingSettings } from '../config/schema.ts';
import type { HeaderFields } from '../pis/headers.ts';
import type { Log } from './log.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';
import { lateSpansOf, type SpanData, spansOf } from './spans.ts';
import { type StartedTrace, startTrace, type Trace } from './traceparent.ts';

export interface Tracing extends RequestObserver {
  /** Continues the caller's trace or starts one. */
  startTrace(headers: HeaderFields): StartedTrace;
  /** Loads the exporter; spans before that are discarded. */
  open(): Promise<void>;
  /** Exports the remaining spans, for at most two seconds. */
  close(): Promise<void>;
}

/** Spans beyond this number are dropped. */
const maxQueueSize = 2_048;
/** Interval of the exports, timeout of one export, and timeout of the last export at the stop. Milliseconds. */
const exportIntervalMs = 2_000;
const exportTimeoutMs = 5_000;
const finalExportMs = 2_000;

/** @returns `undefined` if tracing is off */
export function createTracing({ otlpUrl, sample }: TracingSettings, log: Log): Tracing | undefined {
  if (otlpUrl === null) return undefined;
  let processor: BatchSpanProcessor | undefined;

  const send = (
    toSpans: (record: RequestRecord, trace: Trace) => readonly SpanData[],
    record: RequestRecord,
  ) => {
    const { trace } = record;
    if (!processor || !trace?.sampled) return;
    for (const span of toSpans(record, trace)) processor.onEnd(toReadableSpan(span));
  };

  return {
    startTrace: (headers) => startTrace(headers, sample),
    onRequestEnd: (record) => send(spansOf, record),
    onLateEvent(event, record) {
      if (event.what === 'call') send(lateSpansOf, record);
    },
    async open() {
      const [sdk, otlp] = await Promise.all([
        import('@opentelemetry/sdk-trace-node'),
        import('@opentelemetry/exporter-trace-otlp-http'),
      ]);
      const exporter = new otlp.OTLPTraceExporter({ url: otlpUrl, timeoutMillis: exportTimeoutMs });
      processor = new sdk.BatchSpanProcessor(logFailures(exporter, log), {
        maxQueueSize,
        scheduledDelayMillis: exportIntervalMs,
        exportTimeoutMillis: exportTimeoutMs,
      });
    },
    async close() {
      const sent = processor?.shutdown().catch(() => {}); // logged by logFailures
      await Promise.race([sent, setTimeout(finalExportMs, undefined, { ref: false })]);
    },
  };
}

/** Logs when exports begin to fail and when they succeed again, not every failure. */
function logFailures(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const fails = result.code !== 0; // ExportResultCode.SUCCESS
        if (fails && !isFailing)
          log('warn', 'traces cannot be exported (tracing.otlpUrl); requests are not affected', {
            why: result.error?.message,
          });
        if (!fails && isFailing) log('info', 'traces are exported again');
        isFailing = fails;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

const kinds = { internal: 0, server: 1, client: 2 } as const; // SpanKind
const statuses = { unset: 0, error: 2 } as const; // SpanStatusCode
const sampledFlag = 1;

/** Without the SDK's own spans, which start at their creation: these are created when the request has ended. */
function toReadableSpan({
  name,
  kind,
  traceId,
  spanId,
  parentId,
  startMs,
  endMs,
  failed,
  attributes,
}: SpanData): ReadableSpan {
  const context = { traceId, spanId: spanId ?? randomBytes(8).toString('hex'), traceFlags: sampledFlag };
  return {
    name,
    kind: kinds[kind],
    attributes,
    resource,
    instrumentationScope: { name: 'penstock' },
    spanContext: () => context,
    ...(parentId !== undefined && {
      parentSpanContext: { traceId, spanId: parentId, traceFlags: sampledFlag, isRemote: kind === 'server' },
    }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    ended: true,
    status: { code: failed ? statuses.error : statuses.unset },
    links: [],
    events: [],
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

const resource: ReadableSpan['resource'] = {
  attributes: { 'service.name': 'penstock' },
  merge: () => resource,
  getRawAttributes: () => [['service.name', 'penstock']],
};

/** Seconds and nanoseconds. */
const hrTime = (ms: number): [number, number] => {
  return [Math.floor(ms / 1_000), Math.floor((ms % 1_000) * 1_000_000)];
};
