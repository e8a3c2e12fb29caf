/** Sends an error of the gateway to the TPP, in the standard's own format. */

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { errorBody } from '../pis/tpp-messages.ts';
import { type ErrorDefinition, errorTable, type GatewayError } from '../request/errors.ts';
import { writeCompleteResponse } from './write-response.ts';

/** An error as an answer, before it is written. */
export interface ErrorResponse {
  readonly status: number;
  readonly reason: string;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** What an error's answer takes from the request. */
export interface ErrorContext {
  /** The caller's own `X-Request-ID`, or the new one that stands for it. */
  readonly requestId: string;
  /** Decides on the format of the body. */
  readonly accept: string | undefined;
  /** Fields that the door has said. */
  readonly addedHeaders?: HeaderFields;
}

/** How an error looks to the caller. */
export function errorResponse(
  error: GatewayError,
  { requestId, accept, addedHeaders = [] }: ErrorContext,
): ErrorResponse {
  const { status, retryAfterSeconds }: ErrorDefinition = errorTable[error.code];
  const { contentType, body } = errorBody(
    {
      code: error.code,
      tppCode: error.tppCode,
      text: error.message,
      ...(error.field && { field: error.field }),
    },
    accept,
  );
  return {
    status,
    reason: STATUS_CODES[status] ?? '',
    headers: [
      ...addedHeaders,
      ['X-Request-ID', requestId],
      ['Content-Type', contentType],
      ['Penstock-Error', error.code],
      ...(error.environment ? ([['Penstock-Environment', error.environment]] as const) : []),
      ['Proxy-Status', `penstock; error=${error.proxyError}; details=${quoted(error.message)}`],
      ['Cache-Control', 'no-store'],
      ...(retryAfterSeconds && !headerValue(error.headers, 'retry-after')
        ? ([['Retry-After', String(retryAfterSeconds)]] as const)
        : []),
      ...error.headers,
    ],
    body: Buffer.from(body),
  };
}

/** A string of RFC 9651 section 3.3.3: printable ASCII, quotes and backslashes escaped. */
const quoted = (text: string) => `"${text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, '\\$&')}"`;

/** How long a TPP that is still sending may go on, so that it gets to read why it was refused. Milliseconds. */
export const lingerMs = 2_000;

/** Writes the whole error answer, unless an answer has begun or the TPP has gone. */
export function writeError(
  request: IncomingMessage,
  answer: ServerResponse,
  error: GatewayError,
  caller: ErrorContext,
): void {
  if (answer.headersSent || !answer.writable) {
    answer.destroy();
    return;
  }
  // What is left of an unfinished request is read over, never understood: the connection ends with this answer.
  if (!request.complete) answer.shouldKeepAlive = false;
  const { status, headers, body } = errorResponse(error, caller);
  if (request.complete || request.socket.readableEnded) writeCompleteResponse(answer, status, headers, body);
  else writeAndLinger(request, answer, { status, headers, body });
}

/**
 * Answers and ends the gateway's side, then reads on for a while before letting go: a connection that is closed
 * while something is still coming is reset, and the reset overtakes the answer (RFC 9112 section 9.6).
 */
function writeAndLinger(
  request: IncomingMessage,
  answer: ServerResponse,
  { status, headers, body }: Omit<ErrorResponse, 'reason'>,
): void {
  const { socket } = request;
  const letGo = () => {
    clearTimeout(timer);
    if (socket.writableEnded) socket.destroy();
    else answer.end(); // it still waits behind an earlier answer, or all has come: Node closes behind it
  };
  const timer = setTimeout(letGo, lingerMs);
  request.once('end', letGo).once('error', letGo).once('close', letGo).resume();

  answer.writeHead(status, [...headers, ['Content-Length', String(body.length)]].flat());
  answer.flushHeaders(); // to HEAD there is no body, and what is not written would not bring its head
  answer.write(body, () => socket.end());
}
