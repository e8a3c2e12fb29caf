/** Reads the status once more for a TPP that has waited, with the fields of its own request. */

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { withoutFields } from '../pis/headers.ts';
import { GatewayError } from '../request/errors.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { PollBudget } from './poll-budget.ts';
import { messageFields } from './poll-target.ts';
import { withoutSignature } from './tpp-signature.ts';

/** The part of the deadline that a read may wait for its permit. */
const waitShare = 0.5;

/**
 * Sends a read as if it had arrived now, with a new X-Request-ID. The deadline of the status lane begins again. If the bank must be
 * asked, that counts as a poll: a change is not followed by a burst of reads, one for each of the credentials that wait.
 *
 * @returns the response; `undefined` if the bank or the gateway fails: a later read may succeed
 */
export async function readAgain(
  budget: Pick<PollBudget, 'take'>,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse | undefined> {
  const again = laterRead(request, budget);
  try {
    const response = await next(again);
    return response.status === 429 || response.status >= 500 ? undefined : response;
  } catch {
    return undefined;
  } finally {
    again.permit?.release();
  }
}

/** Of one message to the bank: the TPP has sent `Date` some time ago. */
const earlierFields: ReadonlySet<string> = new Set(['x-request-id', 'date']);

function laterRead(request: RoutedRequest, budget: Pick<PollBudget, 'take'>): RoutedRequest {
  const { operation, client, requestedEnvironment, body, environment, identities, recordEvent } = request;
  const arrivedAtMs = performance.now();
  const deadlineMs = request.deadlineAtMs - request.arrivedAtMs;
  const requestId = randomUUID();
  const headers = withoutFields(withoutSignature(request.headers), earlierFields);
  const due = {
    environment: environment.name,
    tenantId: currentTenantId(request),
    urgency: 'changed',
  } as const;
  return {
    operation,
    client,
    requestId,
    requestedEnvironment,
    headers: [...headers, ...messageFields(requestId)],
    body,
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + deadlineMs,
    recordEvent: recordEvent && withoutCacheEvents(recordEvent),
    identities,
    environment,
    beforeCall: () => takeWithin(deadlineMs * waitShare, (isWanted) => budget.take(due, isWanted)),
  };
}

/** @throws GatewayError QUEUE_TIMEOUT */
async function takeWithin(
  waitMs: number,
  take: (isWanted: () => boolean) => Promise<boolean>,
): Promise<void> {
  const end = new AbortController();
  const timeout = setTimeout(waitMs, false, { ref: false, signal: end.signal }).catch(() => false);
  const isGranted = await Promise.race([take(() => !end.signal.aborted), timeout]);
  end.abort();
  if (!isGranted)
    throw new GatewayError('QUEUE_TIMEOUT', 'The polls of the environment use their share of the rate.');
}

/** The TPP has sent one read, which is counted by the source of its first response. */
const withoutCacheEvents =
  (recordEvent: RecordEvent): RecordEvent =>
  (event) => {
    if (event.what !== 'cache') recordEvent(event);
  };
