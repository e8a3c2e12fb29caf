/** Sends an answer of the line to the TPP: the bank's own status, fields and bytes, and what the gateway says of them. */

import type { ServerResponse } from 'node:http';
import type { PisRequest, PisResponse } from '../flow/messages.ts';
import { type HeaderFields, headerValue } from '../pis/headers.ts';

/** Writes the whole answer; the connection's life is left to Node. What the door has set already is not the bank's to say. */
export function writeResponse(
  answer: ServerResponse,
  { requestId }: PisRequest,
  response: PisResponse,
): void {
  const fields: HeaderFields = [
    ...response.headers.filter(([name]) => !isOurs(name.toLowerCase()) && !answer.hasHeader(name)),
    ['X-Request-ID', requestId],
    ['Penstock-Environment', response.environment],
    ...(response.servedFrom === 'ledger' ? ([['Idempotent-Replayed', 'true']] as const) : []),
  ];
  writeWhole(answer, response.status, fields, response.body);
}

/** Writes status, fields and body at once, with the fields every answer has. */
export function writeWhole(answer: ServerResponse, status: number, fields: HeaderFields, body: Buffer): void {
  const bodyless = status === 204 || status === 304;
  const all: HeaderFields = [
    ...fields,
    ...(headerValue(fields, 'cache-control') === undefined ? ([['Cache-Control', 'no-store']] as const) : []),
    ...(bodyless ? [] : ([['Content-Length', String(body.length)]] as const)),
  ];
  answer.writeHead(status, all.flat());
  answer.end(bodyless ? undefined : body);
}

/** Fields that only the gateway may say; a bank's own of these names would be taken for ours. */
function isOurs(name: string): boolean {
  return name === 'x-request-id' || name === 'idempotent-replayed' || name.startsWith('penstock-');
}
