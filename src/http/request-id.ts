/** `X-Request-ID`: required on every request, and on every answer, the gateway's own errors included. */

import { randomUUID } from 'node:crypto';
import { GatewayError } from '../flow/errors.ts';
import { type HeaderFields, headerValues } from '../pis/headers.ts';

/** Any version of UUID in any case: the standard fixes neither (its parameter is `format: uuid`). */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The caller's own id, as written.
 *
 * @throws GatewayError REQUEST_ID_INVALID if it is missing, repeated or no UUID
 */
export function requestIdOf(fields: HeaderFields): string {
  const [id, ...more] = headerValues(fields, 'x-request-id');
  if (id !== undefined && more.length === 0 && uuid.test(id)) return id;
  const fault = id === undefined ? 'is missing' : 'is not one UUID';
  throw new GatewayError(
    'REQUEST_ID_INVALID',
    `X-Request-ID ${fault}; send a new UUID with every new request.`,
    {
      field: 'X-Request-ID',
    },
  );
}

/** The id that an answer carries: the caller's, or a new one if the caller sent none that can be echoed. */
export function answerIdOf(fields: HeaderFields): string {
  const [id, ...more] = headerValues(fields, 'x-request-id');
  return id !== undefined && more.length === 0 && uuid.test(id) ? id : randomUUID();
}
