/** A collector of spans that accepts OTLP over HTTP, as JSON. */

import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { z } from 'zod';
import { listen } from './ports.ts';
import { endWith } from './test-scope.ts';

const attribute = z.object({
  key: z.string(),
  value: z.object({ stringValue: z.string().optional(), intValue: z.number().optional() }).loose(),
});
const span = z.object({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  status: z.object({ code: z.number() }).loose(),
  startTimeUnixNano: z.string().regex(/^\d+$/),
  endTimeUnixNano: z.string().regex(/^\d+$/),
  attributes: z.array(attribute),
});
/** `ExportTraceServiceRequest`: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request */
const exportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.object({ spans: z.array(span) })),
    }),
  ),
});

export interface CollectedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface OtlpCollector {
  readonly url: string;
  /** All spans received. */
  readonly spans: readonly CollectedSpan[];
  /** The bodies of all requests. */
  readonly bodies: readonly string[];
  /** The values of `service.name`. */
  readonly services: ReadonlySet<unknown>;
  /** Number of requests, including refused ones. */
  requests(): number;
  /** Sets the status of further responses; 0 = no response. */
  respondWith(status: number): void;
}

/** Closed when the test ends. */
export async function startOtlpCollector(t: TestContext): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  const services = new Set<unknown>();
  const bodies: string[] = [];
  let status = 200;
  let requests = 0;
  const server = createServer(async (request, response) => {
    requests += 1;
    const body = await text(request);
    bodies.push(body);
    if (status === 0) return;
    response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}');
    if (status !== 200) return;
    for (const { resource, scopeSpans } of exportRequest.parse(JSON.parse(body)).resourceSpans) {
      services.add(attributesOf(resource.attributes)['service.name']);
      spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(spanOf)));
    }
  });
  const port = await listen(server);
  endWith(t, () => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    spans,
    services,
    bodies,
    requests: () => requests,
    respondWith: (next) => {
      status = next;
    },
  };
}

const attributesOf = (attributes: readonly z.output<typeof attribute>[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value]));

const spanOf = ({ parentSpanId, startTimeUnixNano, endTimeUnixNano, ...rest }: z.output<typeof span>) => ({
  name: rest.name,
  kind: rest.kind,
  traceId: rest.traceId,
  spanId: rest.spanId,
  parentSpanId,
  startMs: Number(startTimeUnixNano) / 1e6,
  endMs: Number(endTimeUnixNano) / 1e6,
  failed: rest.status.code === 2,
  attributes: attributesOf(rest.attributes),
});
