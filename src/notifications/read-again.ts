/** Reads the status once more for a TPP that has waited, with all fields of its own request. */

import { randomUUID } from 'node:crypto';
import { withoutFields } from '../pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler } from '../request/stage.ts';

/**
 * Sends a read as if it had arrived now, with a new X-Request-ID. The deadline of the status lane begins again.
 *
 * @returns the response; `undefined` if the bank or the gateway fails: a later read may succeed
 */
export async function readAgain(
  request: RoutedRequest,
  next: Handler<RoutedRequest>,
): Promise<PisResponse | undefined> {
  const again = laterRead(request);
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

function laterRead(request: RoutedRequest): RoutedRequest {
  const { operation, client, requestedEnvironment, body, environment, identities, recordEvent } = request;
  const arrivedAtMs = performance.now();
  const requestId = randomUUID();
  return {
    operation,
    client,
    requestId,
    requestedEnvironment,
    headers: [...withoutFields(request.headers, messageFields), ['X-Request-ID', requestId]],
    body,
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + request.deadlineAtMs - request.arrivedAtMs,
    recordEvent,
    identities,
    environment,
  };
}
