/** A response of the bank, as a value and as the bytes of an HTTP/1.1 message. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { HeaderFields } from '../pis/headers.ts';

export interface SimulatedResponse {
  readonly status: number;
  /** Without Content-Length, which is derived from the body. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** A response with a JSON body. */
export function jsonResponse(status: number, body: unknown, headers: HeaderFields = []): SimulatedResponse {
  const type = ['Content-Type', 'application/json'] as const;
  return { status, headers: [...headers, type], body: Buffer.from(JSON.stringify(body)) };
}

/** A response with the given bytes as body. */
export function rawResponse(status: number, contentType: string, body: Buffer | string): SimulatedResponse {
  return { status, headers: [['Content-Type', contentType]], body: Buffer.from(body) };
}

/** The same response with additional header fields. */
export function withHeaders(bankResponse: SimulatedResponse, headers: HeaderFields): SimulatedResponse {
  return { ...bankResponse, headers: [...headers, ...bankResponse.headers] };
}

/** Sends a response as valid HTTP. */
export function sendResponse(response: ServerResponse, bankResponse: SimulatedResponse): void {
  const length =
    bankResponse.status === 204 ? [] : [['Content-Length', `${bankResponse.body.length}`] as const];
  response.writeHead(bankResponse.status, [...bankResponse.headers, ...length].flat());
  response.end(bankResponse.body);
}

/** Status line and header fields including the empty line. `framing` contains the fields that state the body's length. */
export function serializeHead(bankResponse: SimulatedResponse, framing: HeaderFields): Buffer {
  const fields = [...bankResponse.headers, ...framing]
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const line = `HTTP/1.1 ${bankResponse.status} ${STATUS_CODES[bankResponse.status] ?? 'Unknown'}`;
  return Buffer.from(`${line}\r\n${fields}\r\n`, 'latin1');
}
