/**
 * Sends the status of a payment as server-sent events (WHATWG HTML): the present one at once, then each change, until the status is
 * final. A stream is a status read that never ends its wait: it listens to the same poller, and reads each change itself.
 */

import type { NotificationSettings } from '../config/schema.ts';
import { type HeaderField, type HeaderFields, headerValue, withoutFields } from '../pis/headers.ts';
import { emptyBody } from '../request/body-buffer.ts';
import type { PisResponse, ResponseStream, RoutedRequest, StreamSink } from '../request/messages.ts';
import { contentOfBody } from '../request/read-content.ts';
import type { RequestEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { ShownStatus, Statuses } from '../request/statuses.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  type FirstRead,
  type LaterReadsDependencies,
  laterReadsOf,
  listenToStatus,
} from './listen-to-status.ts';
import type { PollBudget } from './poll-budget.ts';
import type { Poller } from './poller.ts';
import { readAgain } from './read-again.ts';
import type { OpenStatusListener, StatusListeners } from './status-listeners.ts';
import { isCovered } from './tpp-signature.ts';
import { createWakeUp, type WakeUp } from './wake-up.ts';

export interface StreamDependencies extends LaterReadsDependencies {
  readonly statuses: Statuses;
  readonly poller: Poller;
  /** The permits of the reads that follow the first one. */
  readonly budget: Pick<PollBudget, 'take'>;
  readonly statusListeners: StatusListeners;
  readonly settings: Pick<NotificationSettings, 'maxWaiting'>;
  readonly metrics: Pick<Metrics, 'increment'>;
  /** Called with the events of the reads that follow the first one: they are no requests of the TPP. */
  readonly onReadEvent: (event: RequestEvent, environment: string) => void;
}

/** How a stream ended. */
export type StreamOutcome = 'final' | 'refused' | 'drained' | 'disconnected';

/** How often a comment is sent, so that proxies keep the connection open. Milliseconds. */
const heartbeatMs = 15_000;

/**
 * A read that bypasses or refuses the cache passes unchanged, and so does the response to the first read if it is no 200 or shows no
 * status.
 *
 * @throws GatewayError OVERLOADED if too many reads wait; and whatever the first read throws
 */
export async function streamStatus(
  dependencies: StreamDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse> {
  const { statuses, statusListeners, settings } = dependencies;
  const headers = streamFields(request.headers);
  const { mayStream } = laterReadsOf(dependencies, request).cacheUseOf(headers);
  if (!mayStream || isCovered(request.headers, replacedFields)) return next(request);
  const lastEventId = headerValue(request.headers, 'last-event-id');
  request.headers = headers;
  const wakeUp = createWakeUp();
  const { tenantId } = statuses.keyOf(request);
  const slot = statusListeners.open(tenantId, 'stream', settings.maxWaiting, () => wakeUp.end('drained'));
  try {
    const { response, continues } = await beginStream(dependencies, request, next, {
      lastEventId,
      wakeUp,
      slot,
    });
    if (!continues) slot.close();
    return response;
  } catch (thrown) {
    slot.close();
    throw thrown;
  }
}

interface OpenedStream {
  readonly lastEventId: string | undefined;
  readonly wakeUp: WakeUp;
  /** To be closed when the stream ends. */
  readonly slot: OpenStatusListener;
}

/** @returns the response, and whether events may follow the first one */
async function beginStream(
  dependencies: StreamDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
  { lastEventId, wakeUp, slot }: OpenedStream,
): Promise<{ readonly response: PisResponse; readonly continues: boolean }> {
  const { statuses, statusListeners } = dependencies;
  const { signal } = request; // the status cache removes it
  const first = await next(request);
  if (first.status !== 200) return { response: first, continues: false };
  const shown = await statuses.shownBy(request, first);
  if (shown.code === undefined) return { response: first, continues: false };
  const isFinal = shown.finality === 'final';
  if (isFinal && lastEventId !== undefined && lastEventId === headerValue(first.headers, 'etag'))
    return { response: noContent(first), continues: false };
  const firstEvent = await eventOf(request, first, shown);
  if (isFinal || statusListeners.isDraining())
    return { response: streamOf(first, oneEvent(firstEvent)), continues: false };
  const later = { request: laterReads(dependencies, request), signal, next, shown };
  const stream: ResponseStream = {
    start(sink) {
      sink.write(firstEvent);
      slot.listen();
      void sendChanges(dependencies, later, sink, wakeUp).finally(slot.close);
    },
  };
  return { response: streamOf(first, stream), continues: true };
}

/**
 * The fields of the reads of a stream. Its events are JSON whatever the TPP accepts; equal fields as those of polls let it share their
 * responses.
 */
function streamFields(headers: HeaderFields): HeaderFields {
  return [...withoutFields(headers, replacedFields), ['Accept', 'application/json']];
}

const replacedFields: ReadonlySet<string> = new Set([
  ...['accept', 'accept-encoding', 'accept-language', 'if-none-match', 'last-event-id', 'prefer'],
]);

/** Only the first read asks the bank in any case. */
const directiveFields: ReadonlySet<string> = new Set(['cache-control', 'pragma']);

const streamHead: readonly HeaderField[] = [
  ['Content-Type', 'text/event-stream; charset=utf-8'],
  ['Cache-Control', 'no-store'],
  ['X-Accel-Buffering', 'no'], // nginx and others forward each event at once
];

const streamOf = ({ environment, servedFrom }: PisResponse, stream: ResponseStream): PisResponse => ({
  status: 200,
  headers: streamHead,
  body: emptyBody,
  servedFrom,
  environment,
  stream,
});

/** Keeps a client from connecting again (WHATWG HTML section 9.2.3). */
const noContent = ({ environment, servedFrom }: PisResponse): PisResponse => ({
  status: 204,
  headers: [],
  body: emptyBody,
  servedFrom,
  environment,
});

const oneEvent = (event: string): ResponseStream => ({
  start(sink) {
    sink.write(event);
    sink.end();
  },
});

/** The request of the later reads. It does not refer to the record of the first one, which has ended. */
function laterReads({ onReadEvent }: StreamDependencies, request: RoutedRequest): RoutedRequest {
  const { name } = request.environment;
  return {
    ...request,
    headers: withoutFields(request.headers, directiveFields),
    recordEvent: (event) => onReadEvent(event, name),
  };
}

/** Sends events until the status is final, the bank refuses a read, the gateway drains, or the client disconnects. Never rejects. */
async function sendChanges(
  dependencies: StreamDependencies,
  { request, signal, next, shown }: Omit<FirstRead, 'response'>,
  sink: StreamSink,
  wakeUp: WakeUp,
): Promise<void> {
  const { statuses, metrics } = dependencies;
  const heartbeat = setInterval(() => {
    if (sink.isRead()) sink.write(':\n\n');
  }, heartbeatMs);
  const { listener, stop } = listenToStatus(dependencies, { request, signal, shown }, wakeUp);

  async function untilEnd(): Promise<StreamOutcome> {
    for (;;) {
      const reason = await wakeUp.next();
      if (reason === 'disconnected') return reason;
      if (reason !== 'changed') return 'drained';
      const response = await readAgain(dependencies.budget, request, next);
      if (!response) continue; // the poller notifies again
      if (response.status !== 200) return 'refused';
      const current = await statuses.shownBy(request, response);
      if (current.code === undefined || current.hash === listener.known.hash) continue;
      listener.known = current;
      sink.write(await eventOf(request, response, current));
      if (current.finality === 'final') return 'final';
    }
  }

  const outcome = await untilEnd().catch((): StreamOutcome => 'refused');
  clearInterval(heartbeat);
  stop();
  sink.end();
  metrics.increment('penstock_status_streams_total', { environment: request.environment.name, outcome });
}

/** The event of a status. JSON has no line breaks within strings, so those of the bank's JSON can be replaced. */
async function eventOf(request: RoutedRequest, response: PisResponse, shown: ShownStatus): Promise<string> {
  const tag = headerValue(response.headers, 'etag');
  const data = JSON.stringify({
    paymentId: request.operation.paymentId,
    transactionStatus: shown.code,
    final: shown.finality === 'final',
  });
  const body = await jsonIn(response);
  const whole =
    body === undefined ? data : `${data.slice(0, -1)},"body":${body.replaceAll(/[\r\n]+/g, ' ')}}`;
  return `event: status\n${tag === undefined ? '' : `id: ${tag}\n`}data: ${whole}\n\n`;
}

/** The text of a body in JSON; `undefined` if it is in another format. */
async function jsonIn(response: PisResponse): Promise<string | undefined> {
  const { kind, text } = await contentOfBody(response);
  return kind === 'json' ? text : undefined;
}
