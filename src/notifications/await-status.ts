/**
 * Answers status reads that wait for a change (`Prefer: wait`), and those that are conditional on tags of the gateway.
 *
 * Each of them first gets a 200 for its own cache key, like any other read. A wait then uses no permit and no slot: the poller
 * reads the status for all that wait. When the status has changed, each wait reads it again with its own credentials, from the
 * cache or in a flight shared with equal reads, which needs one permit of the polls.
 */

import type { NotificationSettings } from '../config/schema.ts';
import { initialAgeMs } from '../pis/delta-seconds.ts';
import { type HeaderField, withoutFields } from '../pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { WaitOutcome } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { hasKnownTag, notModified } from './conditional-response.ts';
import { type FirstRead, laterReadsOf, listenToStatus } from './listen-to-status.ts';
import { type ListeningRead, listeningReadIn } from './listening-request.ts';
import type { StatusListener } from './poller.ts';
import { readAgain } from './read-again.ts';
import { type StreamDependencies, streamStatus } from './stream-status.ts';
import { isCovered } from './tpp-signature.ts';
import { createWakeUp, type WakeUp } from './wake-up.ts';

export interface AwaitStatusDependencies extends StreamDependencies {
  readonly settings: Pick<NotificationSettings, 'maxWait' | 'maxWaiting'>;
}

/** @throws GatewayError OVERLOADED if too many reads wait; and whatever the first read throws */
export function awaitStatus(dependencies: AwaitStatusDependencies): Stage<RoutedRequest> {
  const { statuses, settings } = dependencies;
  if (!statuses.enabled) return (request, next) => next(request);
  return (request, next) => {
    if (!request.mayListen) return next(request);
    if (request.wantsEvents) return streamStatus(dependencies, request, next);
    const read = listeningReadIn(request.headers, settings.maxWait, laterReadsOf(dependencies, request));
    if (!read || isCovered(request.headers, answeredFields)) return next(request);
    request.headers = read.headers;
    if (read.waitMs > 0) return wait(dependencies, request, next, read);
    return next(request).then((response) =>
      hasKnownTag(response, read.tags) ? notModified(response) : response,
    );
  };
}

/** The fields that the gateway answers, and does not forward. */
const answeredFields: ReadonlySet<string> = new Set(['if-none-match', 'prefer']);

/** @throws GatewayError OVERLOADED before the bank is asked */
async function wait(
  dependencies: AwaitStatusDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
  { tags, waitMs }: ListeningRead,
): Promise<PisResponse> {
  const { statuses, statusListeners, settings } = dependencies;
  const { signal } = request; // the status cache removes it
  const wakeUp = createWakeUp();
  const { tenantId } = statuses.keyOf(request);
  const slot = statusListeners.open(tenantId, 'wait', settings.maxWaiting, () => wakeUp.end('drained'));
  try {
    const first = await next(request);
    if (first.status !== 200) return first;
    const shown = await statuses.shownBy(request, first);
    if (shown.code === undefined) return first; // without a status, there is no change to wait for
    const isAnswered = (tags && !hasKnownTag(first, tags)) || shown.finality === 'final';
    const read = { request, signal, next, response: first, shown, tags };
    if (!isAnswered) slot.listen();
    const response = isAnswered ? first : await waitForChange(dependencies, read, wakeUp, waitMs);
    if (response.status !== 200) return response;
    return preferenceApplied(hasKnownTag(response, tags) ? notModified(response) : response, waitMs);
  } finally {
    slot.close();
  }
}

/** A read that waits until its status is another one than those that the TPP has. */
interface WaitingRead extends FirstRead {
  /** Of the statuses that the TPP has. */
  readonly tags: readonly string[] | undefined;
}

/** @returns a status that the TPP does not have, an error of the bank, or the last status that is known */
async function waitForChange(
  dependencies: AwaitStatusDependencies,
  first: WaitingRead,
  wakeUp: WakeUp,
  waitMs: number,
): Promise<PisResponse> {
  const { request } = first;
  if (dependencies.statusListeners.isDraining()) return first.response;
  const leftMs = request.arrivedAtMs + waitMs - performance.now();
  const timer = setTimeout(() => wakeUp.end('unchanged'), Math.max(0, Math.ceil(leftMs)));
  const { listener, stop } = listenToStatus(dependencies, first, wakeUp);
  const startedAtMs = performance.now();
  try {
    const { outcome, response, readingMs } = await untilChange(dependencies, first, listener, wakeUp);
    const waitedMs = performance.now() - startedAtMs - readingMs;
    request.waitedMs = waitedMs;
    request.recordEvent?.({ what: 'wait', outcome, waitedMs });
    return response;
  } finally {
    clearTimeout(timer);
    stop();
  }
}

interface EndedWait {
  readonly outcome: WaitOutcome;
  readonly response: PisResponse;
  /** Time that was spent on reading. */
  readonly readingMs: number;
}

/** Reads the status each time it may have changed, until it has or the wait ends. */
async function untilChange(
  dependencies: AwaitStatusDependencies,
  { request, next, response: first, tags }: WaitingRead,
  listener: StatusListener,
  wakeUp: WakeUp,
): Promise<EndedWait> {
  const { statuses } = dependencies;
  const { paymentKey } = statuses.keyOf(request);
  /** Shows the status that the listener knows. */
  let latest = { response: first, atMs: request.arrivedAtMs };
  let readingMs = 0;
  for (;;) {
    const reason = await wakeUp.next();
    if (reason === 'disconnected') return { outcome: reason, response: latest.response, readingMs };
    const isOver = reason !== 'changed';
    // No read after the end, unless a TPP may have received another status, or the bank has refused or failed the last poll: this
    // read has all fields of the TPP.
    const needsOwnRead = reason === 'unchanged' && listener.hasFailedPoll === true;
    const isRead = !isOver || needsOwnRead || !(await statuses.isCurrent(paymentKey, listener.known.hash));
    const readAtMs = performance.now();
    const response = isRead ? await readAgain(dependencies.budget, request, next) : undefined;
    readingMs += performance.now() - readAtMs;
    if (response && response.status !== 200) return { outcome: 'refused', response, readingMs };
    const current = response && (await statuses.shownBy(request, response));
    const isShown = current?.code !== undefined; // a page about maintenance, for example, shows no status
    if (response && isShown && current.hash !== listener.known.hash) {
      const isNew = !hasKnownTag(response, tags) || current.finality === 'final';
      if (isNew) return { outcome: 'changed', response, readingMs };
      listener.known = current;
      latest = { response, atMs: performance.now() };
    }
    if (!isOver) continue;
    const sinceMs = performance.now() - latest.atMs;
    const last = response && isShown ? response : unchanged(latest.response, sinceMs);
    return { outcome: reason, response: last, readingMs };
  }
}

/** A response, after the time for which no other status was seen. A stale one is still stale. */
function unchanged(response: PisResponse, sinceMs: number): PisResponse {
  const isStale = response.servedFrom === 'stale-cache';
  const fields: readonly HeaderField[] = [
    ['Cache-Status', `penstock; hit; ${isStale ? 'fwd=stale; ' : ''}detail=unchanged`],
    ['Age', String(Math.floor((initialAgeMs(response.headers) + sinceMs) / 1_000))],
  ];
  const headers = [...withoutFields(response.headers, cacheFields), ...fields];
  return { ...response, headers, servedFrom: isStale ? 'stale-cache' : 'cache' };
}

const cacheFields: ReadonlySet<string> = new Set(['age', 'cache-status']);

const preferenceApplied = (response: PisResponse, waitMs: number): PisResponse => ({
  ...response,
  headers: [...response.headers, ['Preference-Applied', `wait=${Math.ceil(waitMs / 1_000)}`]],
});
