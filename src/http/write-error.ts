/** Sends an error of the gateway to the TPP, in a format of the standard. */

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { type HeaderField, type HeaderFields, headerValue } from '../pis/headers.ts';
import { type ErrorFormat, errorBody, errorFormats } from '../pis/tpp-messages.ts';
import { type ErrorDefinition, errorTable, type GatewayError } from '../request/errors.ts';
import { preferredMediaType } from './accept.ts';
import { writeCompleteResponse } from './write-response.ts';

/** The parts of an error response. */
export interface ErrorResponse {
  readonly status: number;
  readonly reason: string;
  readonly headers: HeaderFields;
  readonly body: Buffer;
}

/** What an error response takes from the request. */
export interface ErrorContext {
  /** The client's own `X-Request-ID`, or a new one in its place. */
  readonly requestId: string;
  /** The `Accept` field, which selects the format of the body. */
  readonly accept: string | undefined;
  /** Fields of every response to this request, such as `RateLimit`. */
  readonly addedFields?: HeaderFields;
  /** The error reference (`listen.errorPageUrl`); without it, the response has no link. */
  readonly errorPageUrl?: string | null;
}

export function errorResponse(
  error: GatewayError,
  { requestId, accept, addedFields = [], errorPageUrl }: ErrorContext,
): ErrorResponse {
  const { status, retryAfterSeconds }: ErrorDefinition = errorTable[error.code];
  const { code, tppCode, message: text, field, executed } = error;
  const format = preferredFormat(accept);
  return {
    status,
    reason: STATUS_CODES[status] ?? '',
    headers: [
      ...addedFields,
      ['X-Request-ID', requestId],
      ['Content-Type', format],
      ['Penstock-Error', code],
      ...(errorPageUrl ? [helpLink(errorPageUrl, code)] : []),
      ...(error.environment ? ([['Penstock-Environment', error.environment]] as const) : []),
      ['Proxy-Status', `penstock; error=${error.proxyError}; details=${quoted(text)}`],
      ['Cache-Control', 'no-store'],
      ...(retryAfterSeconds && !headerValue(error.headers, 'retry-after')
        ? ([['Retry-After', String(retryAfterSeconds)]] as const)
        : []),
      ...error.headers,
    ],
    body: Buffer.from(errorBody({ code, tppCode, text, field, payment: executed?.payment }, format)),
  };
}

/** RFC 8288. The fragment is that of the heading in docs/errors.md, as GitHub and most generators write it. */
const helpLink = (errorPageUrl: string, code: string): HeaderField => [
  'Link',
  `<${errorPageUrl}#${code.toLowerCase()}>; rel="help"`,
];

/** tppMessages, unless `Accept` ranks problem+json higher, or names it first at the same rank (RFC 9110 section 12.5.1). */
function preferredFormat(accept: string | undefined): ErrorFormat {
  if (accept === undefined) return 'application/json';
  const preferred = preferredMediaType(accept, errorFormats);
  return preferred === 'application/problem+json' ? preferred : 'application/json';
}

/** A string of RFC 9651 section 3.3.3: printable ASCII, with quotes and backslashes escaped. */
const quoted = (text: string) => `"${text.replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, '\\$&')}"`;

/** How long a TPP may continue to send after a refusal, so that it can read the refusal. Milliseconds. */
export const lingerMs = 2_000;

/** Writes an error response, unless another response has begun or the connection is closed. */
export function writeError(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  error: GatewayError,
  context: ErrorContext,
): void {
  if (outgoing.headersSent || !outgoing.writable) {
    outgoing.destroy();
    return;
  }
  // The rest of an unfinished request is discarded, never parsed as another request.
  if (!incoming.complete) outgoing.shouldKeepAlive = false;
  const { status, headers, body } = errorResponse(error, context);
  if (incoming.complete || incoming.socket.readableEnded)
    writeCompleteResponse(outgoing, status, headers, body);
  else writeAndLinger(incoming, outgoing, { status, headers, body });
}

/**
 * Responds and ends the gateway's side of the connection, then discards input for a while before it closes the socket: a
 * socket that is closed with unread input is reset, and the reset overtakes the response (RFC 9112 section 9.6).
 */
function writeAndLinger(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { status, headers, body }: Omit<ErrorResponse, 'reason'>,
): void {
  const { socket } = incoming;
  const close = () => {
    clearTimeout(timer);
    if (socket.writableEnded) socket.destroy();
    else outgoing.end(); // it is queued behind an earlier one, or the request has ended: Node closes the connection behind it
  };
  const timer = setTimeout(close, lingerMs);
  incoming.once('end', close).once('error', close).once('close', close).resume();

  outgoing.writeHead(status, [...headers, ['Content-Length', String(body.length)]].flat());
  outgoing.flushHeaders(); // a response to HEAD has no body, whose write would send the head
  outgoing.write(body, () => socket.end());
}
