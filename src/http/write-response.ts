/** Sends an answer of the line to the TPP: the bank's own status, fields and bytes, and what the gateway says of them. */

import type { ServerResponse } from 'node:http';
import { type HeaderField, type HeaderFields, headerValue, lowerCase } from '../pis/headers.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';

/** Writes the whole answer; the connection's life is left to Node. @param said what the door has said: not the bank's to say */
export function writeResponse(
  answer: ServerResponse,
  { requestId }: PisRequest,
  response: PisResponse,
  said: HeaderFields,
): void {
  const fields: HeaderField[] = response.headers.filter(
    ([name]) => !isGatewayField(lowerCase(name)) && headerValue(said, lowerCase(name)) === undefined,
  );
  fields.push(...said, ['X-Request-ID', requestId], ['Penstock-Environment', response.environment]);
  if (response.servedFrom === 'ledger') fields.push(['Idempotent-Replayed', 'true']);
  writeCompleteResponse(answer, response.status, fields, response.body);
}

/** Writes status, fields and body at once, with the fields every answer has. */
export function writeCompleteResponse(
  answer: ServerResponse,
  status: number,
  fields: HeaderFields,
  body: Buffer,
): void {
  const bodyless = status === 204 || status === 304;
  const raw: string[] = [];
  for (const [name, value] of fields) raw.push(name, value);
  if (headerValue(fields, 'cache-control') === undefined) raw.push('Cache-Control', 'no-store');
  if (!bodyless) raw.push('Content-Length', String(body.length));
  answer.writeHead(status, raw);
  if (bodyless) answer.end();
  else if (body.length > maxSingleWriteBytes) answer.end(body);
  else answer.end(body.toString('latin1'), 'latin1');
}

/** A text is written together with the head, in one piece; of larger bodies the copy would cost more than that saves. */
const maxSingleWriteBytes = 16_384;

/** Fields that only the gateway may say; a bank's own of these names would be taken for ours. */
function isGatewayField(name: string): boolean {
  return name === 'x-request-id' || name === 'idempotent-replayed' || name.startsWith('penstock-');
}
