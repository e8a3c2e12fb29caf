/** What the bank answers, as a value; and the same as the bytes of an HTTP/1.1 message. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { HeaderFields } from '../pis/headers.ts';

export interface BankResponse {
  readonly status: number;
  /** Without Content-Length, which follows from the body. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** An answer with a JSON body. */
export function jsonResponse(status: number, body: unknown, headers: HeaderFields = []): BankResponse {
  const type = ['Content-Type', 'application/json'] as const;
  return { status, headers: [...headers, type], body: Buffer.from(JSON.stringify(body)) };
}

/** An answer whose body is sent as it stands. */
export function rawResponse(status: number, contentType: string, body: Buffer | string): BankResponse {
  return { status, headers: [['Content-Type', contentType]], body: Buffer.from(body) };
}

/** The same answer with more header fields. */
export function withHeaders(answer: BankResponse, headers: HeaderFields): BankResponse {
  return { ...answer, headers: [...headers, ...answer.headers] };
}

/** Sends an answer the proper way. */
export function send(response: ServerResponse, answer: BankResponse): void {
  const length = answer.status === 204 ? [] : [['Content-Length', `${answer.body.length}`] as const];
  response.writeHead(answer.status, [...answer.headers, ...length].flat());
  response.end(answer.body);
}

/** Status line and header fields up to and including the empty line. `framing` is what tells the body's length. */
export function serializeHead(answer: BankResponse, framing: HeaderFields): Buffer {
  const fields = [...answer.headers, ...framing].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const line = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? 'Unknown'}`;
  return Buffer.from(`${line}\r\n${fields}\r\n`, 'latin1');
}
