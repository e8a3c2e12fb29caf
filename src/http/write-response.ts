/** Sends a response of the pipeline to the TPP: status, fields and bytes of the bank, and the fields of the gateway. */

import type { ServerResponse } from 'node:http';
import { type HeaderFields, isNamed, isSameName, lowerCase } from '../pis/headers.ts';
import { endWithBody } from '../request/end-with-body.ts';
import type { PisRequest, PisResponse, ResponseStream, StreamSink } from '../request/messages.ts';
import { streamWritten } from './connection.ts';

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
  if (response.meaning?.outcome === 'in-doubt') raw.push('Penstock-Outcome', 'unknown');
  if (response.servedFrom === 'ledger') raw.push('Idempotent-Replayed', 'true');
  if (!hasCacheControl) raw.push('Cache-Control', 'no-store');
  if (response.stream) startStream(outgoing, response.status, raw, response.stream);
  else write(outgoing, response.status, raw, response.body);
}

function startStream(outgoing: ServerResponse, status: number, raw: string[], stream: ResponseStream): void {
  outgoing.writeHead(status, raw);
  outgoing.flushHeaders();
  stream.start(sinkOf(outgoing));
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

/** Beyond the buffers of the system, no text waits for a client that does not read. */
function sinkOf(outgoing: ServerResponse): StreamSink {
  outgoing.on('error', () => {}); // the client disconnects
  return {
    write(text) {
      if (outgoing.writableNeedDrain) outgoing.destroy();
      else if (outgoing.writable) outgoing.write(text);
      outgoing.socket?.emit(streamWritten);
    },
    isRead() {
      const isRead = outgoing.writableLength === 0;
      if (!isRead) outgoing.destroy();
      return isRead;
    },
    end() {
      if (outgoing.writable) outgoing.end();
    },
  };
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
