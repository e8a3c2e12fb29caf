/**
 * Answers status reads that wait for a change (`Prefer: wait`), and those that are conditional on tags of the gateway.
 *
 * Each of them first gets a 200 for its own cache key, like any other read. A wait then uses no permit and no slot: the poller
 * reads the status for all that wait. When the status has changed, each wait reads it again with its own credentials, from the
 * cache or in a flight shared with equal reads.
 */

import type { NotificationSettings } from '../config/schema.ts';
import { initialAgeMs } from '../pis/delta-seconds.ts';
import { type HeaderField, withoutFields } from '../pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { WaitOutcome } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { ShownStatus, Statuses } from '../request/statuses.ts';
import { hasKnownTag, notModified } from './conditional-response.ts';
import { type ListeningRead, listeningReadIn } from './listening-request.ts';
import { type OpenListeners, tooManyListeners } from './open-listeners.ts';
import { pollTargetOf } from './poll-target.ts';
import type { Poller } from './poller.ts';
import { readAgain } from './read-again.ts';
import { type StreamDependencies, streamStatus } from './stream-status.ts';
import { createWakeUp } from './wake-up.ts';

export interface AwaitStatusDependencies extends StreamDependencies {
  readonly statuses: Statuses;
  readonly poller: Poller;
  readonly openListeners: OpenListeners;
  readonly settings: Pick<NotificationSettings, 'maxWait' | 'maxWaiting'>;
}

/** @throws GatewayError OVERLOADED if too many reads wait; and whatever the first read throws */
export function awaitStatus(dependencies: AwaitStatusDependencies): Stage<RoutedRequest> {
  const { statuses, settings } = dependencies;
  if (!statuses.enabled) return (request, next) => next(request);
  return (request, next) => {
    if (!request.mayListen) return next(request);
    if (request.wantsEvents) return streamStatus(dependencies, request, next);
    const read = listeningReadIn(request.headers, settings.maxWait, statuses);
    if (!read) return next(request);
    request.headers = read.headers;
    if (read.waitMs > 0) return wait(dependencies, request, next, read);
    return next(request).then((response) =>
      hasKnownTag(response, read.tags) ? notModified(response) : response,
    );
  };
}

async function wait(
  dependencies: AwaitStatusDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
  { tags, waitMs }: ListeningRead,
): Promise<PisResponse> {
  const { signal } = request; // the status cache removes it
  const first = await next(request);
  if (first.status !== 200) return first;
  const shown = await dependencies.statuses.shownBy(request, first);
  if (shown.code === undefined) return first; // without a status, there is no change to wait for
  const isAnswered = (tags && !hasKnownTag(first, tags)) || shown.finality === 'final';
  const response = isAnswered
    ? first
    : await waitForChange(dependencies, { request, signal, next, first, shown, waitMs });
  if (response.status !== 200) return response;
  return preferenceApplied(hasKnownTag(response, tags) ? notModified(response) : response, waitMs);
}

interface Wait {
  readonly request: RoutedRequest;
  readonly signal: RoutedRequest['signal'];
  readonly next: Handler<RoutedRequest>;
  readonly first: PisResponse;
  /** The status of `first`. */
  readonly shown: ShownStatus;
  readonly waitMs: number;
}

/** @returns the changed status, an error of the bank, or `first` */
async function waitForChange(
  { statuses, poller, openListeners, settings }: AwaitStatusDependencies,
  { request, signal, next, first, shown, waitMs }: Wait,
): Promise<PisResponse> {
  const payment = statuses.keyOf(request);
  if (openListeners.isDraining()) return first;
  const wakeUp = createWakeUp();
  const drain = () => wakeUp.end('drained');
  const close = openListeners.open(payment.tenantId, 'wait', settings.maxWaiting, drain);
  if (!close) throw tooManyListeners();
  const disconnect = () => wakeUp.end('disconnected');
  signal?.addEventListener('abort', disconnect, { once: true });
  if (signal?.aborted) disconnect();
  const endsAtMs = request.arrivedAtMs + waitMs;
  const timer = setTimeout(
    () => wakeUp.end('unchanged'),
    Math.max(0, Math.ceil(endsAtMs - performance.now())),
  );
  const stopListening = poller.listen({
    urgency: 'listener',
    target: pollTargetOf(request, payment),
    known: shown,
    onChange: wakeUp.wake,
    onRefused: wakeUp.wake,
  });
  const startedAtMs = performance.now();
  /** Time that was spent on reading. */
  let readingMs = 0;

  async function read(): Promise<PisResponse | undefined> {
    const readAtMs = performance.now();
    const response = await readAgain(request, next);
    readingMs += performance.now() - readAtMs;
    return response;
  }

  async function untilChange(): Promise<readonly [WaitOutcome, PisResponse]> {
    for (let reason = await wakeUp.next(); ; reason = await wakeUp.next()) {
      const isOver = reason !== 'changed';
      if (reason === 'disconnected') return [reason, first];
      // No read after the end, unless a TPP may have received another status: that costs no request to the bank.
      const isRead = !isOver || !(await statuses.isCurrent(payment.paymentKey, shown.hash));
      const response = isRead ? await read() : undefined;
      if (response && response.status !== 200) return ['refused', response];
      if (response && (await statuses.shownBy(request, response)).hash !== shown.hash)
        return ['changed', response];
      if (isOver) return [reason, response ?? unchanged(first, performance.now() - request.arrivedAtMs)];
    }
  }

  try {
    const [outcome, response] = await untilChange();
    const waitedMs = performance.now() - startedAtMs - readingMs;
    request.waitedMs = waitedMs;
    request.recordEvent?.({ what: 'wait', outcome, waitedMs });
    return response;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', disconnect);
    stopListening();
    close();
  }
}

/** The first response, which is still true after this time. */
function unchanged(first: PisResponse, sinceMs: number): PisResponse {
  const ageSeconds = Math.floor((initialAgeMs(first.headers) + sinceMs) / 1_000);
  const headers = withoutFields(first.headers, cacheFields);
  return { ...first, headers: [...headers, ...unchangedFields(ageSeconds)], servedFrom: 'cache' };
}

const cacheFields: ReadonlySet<string> = new Set(['age', 'cache-status']);

const unchangedFields = (ageSeconds: number): readonly HeaderField[] => [
  ['Cache-Status', 'penstock; hit; detail=unchanged'],
  ['Age', String(ageSeconds)],
];

const preferenceApplied = (response: PisResponse, waitMs: number): PisResponse => ({
  ...response,
  headers: [...response.headers, ['Preference-Applied', `wait=${Math.ceil(waitMs / 1_000)}`]],
});
