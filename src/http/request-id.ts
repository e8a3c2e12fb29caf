/** `X-Request-ID`: required in every request, and part of every response, the gateway's own errors included. */

import { randomUUID } from 'node:crypto';
import { type HeaderFields, headerValues } from '../pis/headers.ts';
import { GatewayError } from '../request/errors.ts';

/**
 * The client's own id, as it was sent.
 *
 * @throws GatewayError REQUEST_ID_INVALID if it is missing, repeated or not a UUID
 */
export function requestIdOf(fields: HeaderFields): string {
  const id = validIdIn(fields);
  if (id !== undefined) return id;
  const text = 'X-Request-ID is missing or not one UUID; send a new UUID with every new request.';
  throw new GatewayError('REQUEST_ID_INVALID', text, { field: 'X-Request-ID' });
}

/** The id of the response: the client's, or a new one if the client has sent no valid one. */
export const responseIdOf = (fields: HeaderFields): string => validIdIn(fields) ?? randomUUID();

function validIdIn(fields: HeaderFields): string | undefined {
  const ids = headerValues(fields, 'x-request-id');
  const [id] = ids;
  return id !== undefined && ids.length === 1 && uuid.test(id) ? id : undefined;
}

/** Any version of UUID, in upper or lower case: the standard restricts neither (its parameter is `format: uuid`). */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
