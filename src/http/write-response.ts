/** Sends a response of the pipeline to the TPP: status, fields and bytes of the bank, and the fields of the gateway. */

import type { ServerResponse } from 'node:http';
import { type HeaderField, type HeaderFields, headerValue, lowerCase } from '../pis/headers.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';

/** @param addedFields fields of every response to this request; they replace the bank's fields of the same name */
export function writeResponse(
  outgoing: ServerResponse,
  { requestId }: PisRequest,
  response: PisResponse,
  addedFields: HeaderFields,
): void {
  const fields: HeaderField[] = response.headers.filter(
    ([name]) => !isGatewayField(lowerCase(name)) && headerValue(addedFields, lowerCase(name)) === undefined,
  );
  fields.push(...addedFields, ['X-Request-ID', requestId], ['Penstock-Environment', response.environment]);
  if (response.servedFrom === 'ledger') fields.push(['Idempotent-Replayed', 'true']);
  writeCompleteResponse(outgoing, response.status, fields, response.body);
}

/** Fields that only the gateway may set: the bank's own fields of these names are removed. */
function isGatewayField(name: string): boolean {
  return name === 'x-request-id' || name === 'idempotent-replayed' || name.startsWith('penstock-');
}

/** Writes status, fields and body, with the fields that every response has. Node decides about the connection. */
export function writeCompleteResponse(
  outgoing: ServerResponse,
  status: number,
  fields: HeaderFields,
  body: Buffer,
): void {
  const bodyless = status === 204 || status === 304;
  const raw: string[] = [];
  for (const [name, value] of fields) raw.push(name, value);
  if (headerValue(fields, 'cache-control') === undefined) raw.push('Cache-Control', 'no-store');
  if (!bodyless) raw.push('Content-Length', String(body.length));
  outgoing.writeHead(status, raw);
  if (bodyless) outgoing.end();
  else if (body.length > maxSingleWriteBytes) outgoing.end(body);
  else outgoing.end(body.toString('latin1'), 'latin1');
}

/** Node writes a string together with the head. For larger bodies, the copy costs more than the second write. */
const maxSingleWriteBytes = 16_384;
