/** Reads the status once more for a TPP that has waited, with the fields of its own request. */

import { randomUUID } from 'node:crypto';
import { withoutFields } from '../pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { Statuses } from '../request/statuses.ts';
import type { ReadPace } from './pace-reads.ts';
import { withoutSignature } from './tpp-signature.ts';

export interface ReadAgainDependencies {
  readonly statuses: Pick<Statuses, 'keyOf' | 'readKeyOf'>;
  readonly readPace: ReadPace;
}

/** The part of the deadline that a read may wait for its permit. */
const waitShare = 0.5;

/**
 * Sends a read as if it had arrived now, with a new X-Request-ID, when the budget of polls allows it. The deadline of the status lane
 * begins again.
 *
 * @returns the response; `undefined` if the bank or the gateway fails: a later read may succeed
 */
export async function readAgain(
  { statuses, readPace }: ReadAgainDependencies,
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse | undefined> {
  const deadlineMs = request.deadlineAtMs - request.arrivedAtMs;
  const deadlineAtMs = performance.now() + deadlineMs;
  const headers = withoutFields(withoutSignature(request.headers), messageFields);
  const key = statuses.readKeyOf({ ...request, headers }) ?? randomUUID();
  const { tenantId } = statuses.keyOf(request);
  const due = { environment: request.environment.name, tenantId };
  const arrivedAtMs = await readPace.take(key, due, deadlineMs * waitShare);
  if (arrivedAtMs === undefined) return undefined;
  const requestId = randomUUID();
  const again = laterRead(request, {
    requestId,
    headers: [...headers, ['X-Request-ID', requestId]],
    arrivedAtMs,
    deadlineAtMs,
  });
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
const messageFields: ReadonlySet<string> = new Set(['x-request-id', 'date']);

function laterRead(
  { operation, client, requestedEnvironment, body, environment, identities, recordEvent }: RoutedRequest,
  message: Pick<RoutedRequest, 'requestId' | 'headers' | 'arrivedAtMs' | 'deadlineAtMs'>,
): RoutedRequest {
  return {
    operation,
    client,
    requestedEnvironment,
    body,
    recordEvent: recordEvent && withoutCacheEvents(recordEvent),
    identities,
    environment,
    ...message,
  };
}

/** The TPP has sent one read, which is counted by the source of its first response. */
const withoutCacheEvents =
  (recordEvent: RecordEvent): RecordEvent =>
  (event) => {
    if (event.what !== 'cache') recordEvent(event);
  };
