/** Reads a request's body whole, within its limit, as the very bytes that came. */

import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../flow/errors.ts';
import { gather } from '../flow/gather.ts';

/** @throws GatewayError BODY_TOO_LARGE if the head announces more than `maxBytes` */
export function refuseTooLargeBody(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * The bytes of the body; empty if there is none.
 *
 * @throws GatewayError BODY_TOO_LARGE as soon as more than `maxBytes` have come; REQUEST_TIMEOUT if the caller
 *   went away first, or whatever the listener found wrong with it on the way
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const body = gather();
    const stop = (error: GatewayError) => {
      request.removeAllListeners('data');
      reject(error);
    };
    const fail = (cause: unknown) => stop(cause instanceof GatewayError ? cause : unfinished(cause));
    if (request.destroyed) return fail(request.errored); // the caller went before the door came to read
    request.on('data', (chunk: Buffer) => {
      if (body.add(chunk) > maxBytes) stop(tooLarge(maxBytes));
    });
    request.on('end', () => resolve(body.whole()));
    request.on('error', fail);
    request.on('close', () => {
      if (!request.readableEnded) fail(undefined); // an error for every request would cost more than reading it
    });
  });
}

/** Whether the head announces a body of at least one byte. */
export function announcesBody(request: IncomingMessage): boolean {
  return (
    request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
  );
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('BODY_TOO_LARGE', `The body is larger than ${maxBytes} bytes, the limit here.`);
}

function unfinished(cause: unknown): GatewayError {
  return new GatewayError('REQUEST_TIMEOUT', 'The request was not sent to its end.', { cause });
}
