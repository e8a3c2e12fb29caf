/** Reads a request's body whole, within its limit, as the very bytes that came. */

import type { IncomingMessage } from 'node:http';
import { createBodyBuffer } from '../request/body-buffer.ts';
import { GatewayError } from '../request/errors.ts';
import type { BodyMemoryBudget } from './body-memory-budget.ts';

/** @throws GatewayError BODY_TOO_LARGE if the head announces more than `maxBytes` */
export function refuseTooLargeBody(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * The bytes of the body; empty if there is none.
 *
 * @param room that it shares with all others
 * @throws GatewayError BODY_TOO_LARGE as soon as more than `maxBytes` have come; OVERLOADED if there is no room for it;
 *   REQUEST_TIMEOUT if the caller went away first, or whatever the listener found wrong with it on the way
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  room: BodyMemoryBudget,
): Promise<Buffer> {
  if (!announcesBody(request) && !request.destroyed) return emptyBody;
  return new Promise((resolve, reject) => {
    const body = createBodyBuffer();
    const place = room.register(() => stop(bodyMemoryExhausted()));
    const stop = (error: GatewayError) => {
      place.release();
      body.discard();
      request.removeAllListeners('data');
      reject(error);
    };
    const fail = (cause: unknown) => stop(cause instanceof GatewayError ? cause : unfinished(cause));
    if (request.destroyed) return fail(request.errored); // the caller went before the door came to read
    request.on('data', (chunk: Buffer) => {
      if (body.append(chunk) > maxBytes) stop(tooLarge(maxBytes));
      else place.grow(chunk.length);
    });
    request.on('end', () => {
      place.release();
      resolve(body.toBuffer());
    });
    request.on('error', fail);
    request.on('close', () => {
      if (!request.readableEnded) fail(undefined); // an error for every request would cost more than reading it
    });
  });
}

const emptyBody = Buffer.alloc(0);

/** Whether the head announces a body of at least one byte. */
export function announcesBody(request: IncomingMessage): boolean {
  return (
    request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
  );
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('BODY_TOO_LARGE', `The body is larger than ${maxBytes} bytes, the limit here.`);
}

function bodyMemoryExhausted(): GatewayError {
  return new GatewayError(
    'OVERLOADED',
    'Too much is being sent at the same time; nothing was sent on. Try again.',
  );
}

function unfinished(cause: unknown): GatewayError {
  return new GatewayError('REQUEST_TIMEOUT', 'The request was not sent to its end.', { cause });
}
