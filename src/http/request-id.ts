/** `X-Request-ID`: required on every request, and on every answer, the gateway's own errors included. */

import { randomUUID } from 'node:crypto';
import { type HeaderFields, headerValues } from '../pis/headers.ts';
import { GatewayError } from '../request/errors.ts';

/** Any version of UUID in any case: the standard fixes neither (its parameter is `format: uuid`). */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The caller's own id, as written.
 *
 * @throws GatewayError REQUEST_ID_INVALID if it is missing, repeated or no UUID
 */
export function requestIdOf(fields: HeaderFields): string {
  const id = validIdIn(fields);
  if (id !== undefined) return id;
  const text = 'X-Request-ID is missing or not one UUID; send a new UUID with every new request.';
  throw new GatewayError('REQUEST_ID_INVALID', text, { field: 'X-Request-ID' });
}

/** The id that an answer carries: the caller's, or a new one if the caller sent none that can be echoed. */
export const responseIdOf = (fields: HeaderFields): string => validIdIn(fields) ?? randomUUID();

function validIdIn(fields: HeaderFields): string | undefined {
  const ids = headerValues(fields, 'x-request-id');
  const [id] = ids;
  return id !== undefined && ids.length === 1 && uuid.test(id) ? id : undefined;
}
