/** Sends spans to a collector, by OTLP over HTTP. Only this file knows OpenTelemetry, and it is loaded only where it is used. */

import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { BatchSpanProcessor, ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-node';
import type { HeaderFields } from '../pis/headers.ts';
import type { Log } from './log.ts';
import type { RequestObserver, RequestRecord } from './request-record.ts';
import { lateSpansOf, type SpanData, spansOf } from './spans.ts';
import { type StartedTrace, startTrace, type Trace } from './traceparent.ts';

export interface Tracing extends RequestObserver {
  /** Which trace a request belongs to, and what the bank is told of it. */
  startTrace(fields: HeaderFields): StartedTrace;
  /** Loads what sends the spans; until then none is kept. */
  open(): Promise<void>;
  /** Sends what is left, for as long as that may take. */
  close(): Promise<void>;
}

export interface TracingSettings {
  readonly otlpUrl: string | null;
  /** The part of the requests that is traced: 0 to 1. */
  readonly sample: number;
}

/** Spans that wait to be sent; more are dropped. */
const maxQueueSize = 2_048;
/** How often they are sent, how long sending may take, and how long the last ones may when the gateway stops. Milliseconds. */
const exportIntervalMs = 2_000;
const exportTimeoutMs = 5_000;
const finalExportMs = 2_000;

/** @returns `undefined` if nothing is to be traced */
export function createTracing({ otlpUrl, sample }: TracingSettings, log: Log): Tracing | undefined {
  if (otlpUrl === null) return undefined;
  let processor: BatchSpanProcessor | undefined;

  const send = (
    spans: (decision: RequestRecord, trace: Trace) => readonly SpanData[],
    decision: RequestRecord,
  ) => {
    const { trace } = decision;
    if (!processor || !trace?.sampled) return;
    for (const span of spans(decision, trace)) processor.onEnd(toReadableSpan(span));
  };

  return {
    startTrace: (fields) => startTrace(fields, sample),
    onRequestEnd: (decision) => send(spansOf, decision),
    onLateEvent(fact, decision) {
      if (fact.what === 'call') send(lateSpansOf, decision);
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
      const sent = processor?.shutdown().catch(() => {}); // the log has it
      await Promise.race([sent, setTimeout(finalExportMs, undefined, { ref: false })]);
    },
  };
}

/** Says when spans begin to be lost, and when they arrive again; not with every batch. */
function logFailures(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const fails = result.code !== 0; // ExportResultCode.SUCCESS
        if (fails && !isFailing)
          log('warn', 'traces cannot be sent; requests go on', { why: result.error?.message });
        if (!fails && isFailing) log('info', 'traces can be sent again');
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

/** Made by hand: the SDK's own spans begin when they are made, and these are made when all is over. */
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

/** Who sends the spans. */
const resource: ReadableSpan['resource'] = {
  attributes: { 'service.name': 'penstock' },
  merge: () => resource,
  getRawAttributes: () => [['service.name', 'penstock']],
};

/** Seconds, and nanoseconds beside them. */
const hrTime = (ms: number): [number, number] => {
  return [Math.floor(ms / 1_000), Math.floor((ms % 1_000) * 1_000_000)];
};
