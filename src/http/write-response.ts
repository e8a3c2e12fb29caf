/** Sends a response of the pipeline to the TPP: status, fields and bytes of the bank, and the fields of the gateway. */

import type { ServerResponse } from 'node:http';
import { type HeaderFields, isNamed, isSameName, lowerCase } from '../pis/headers.ts';
import { endWithBody } from '../request/end-with-body.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';

/** @param addedFields fields of every response to this request; they replace the bank's fields of the same name */
export function writeResponse(
  outgoing: ServerResponse,
  { requestId }: PisRequest,
  response: PisResponse,
  addedFields: HeaderFields,
): void {
  const raw: string[] = [];
  let hasCacheControl = false;
  for (const [field, value] of response.headers) {
    if (isGatewayField(field) || isReplaced(field, addedFields)) continue;
    hasCacheControl ||= isNamed(field, 'cache-control');
    raw.push(field, value);
  }
  for (const [field, value] of addedFields) raw.push(field, value);
  raw.push('X-Request-ID', requestId, 'Penstock-Environment', response.environment);
  if (response.servedFrom === 'ledger') raw.push('Idempotent-Replayed', 'true');
  if (!hasCacheControl) raw.push('Cache-Control', 'no-store');
  write(outgoing, response.status, raw, response.body);
}

/** Fields that only the gateway may set: the bank's own fields of these names are removed. */
function isGatewayField(field: string): boolean {
  if (isNamed(field, 'x-request-id') || isNamed(field, 'idempotent-replayed')) return true;
  return (field.startsWith('P') || field.startsWith('p')) && lowerCase(field).startsWith('penstock-');
}

function isReplaced(field: string, addedFields: HeaderFields): boolean {
  for (const [added] of addedFields) if (isSameName(field, added)) return true;
  return false;
}

/** Writes a response of the gateway itself, whose fields include `Cache-Control`. */
export const writeCompleteResponse = (
  outgoing: ServerResponse,
  status: number,
  fields: HeaderFields,
  body: Buffer,
): void => write(outgoing, status, fields.flat(), body);

/** Adds the length, and writes head and body. Node decides about the connection. */
function write(outgoing: ServerResponse, status: number, raw: string[], body: Buffer): void {
  const bodyless = status === 204 || status === 304;
  if (!bodyless) raw.push('Content-Length', String(body.length));
  outgoing.writeHead(status, raw);
  if (bodyless) outgoing.end();
  else endWithBody(outgoing, body);
}
