/** Reads the body of a request within its limits, as the bytes that were sent. */

import type { IncomingMessage } from 'node:http';
import { createBodyBuffer } from '../request/body-buffer.ts';
import { GatewayError } from '../request/errors.ts';
import type { BodyMemoryBudget } from './body-memory-budget.ts';

/** @throws GatewayError BODY_TOO_LARGE if the head announces more than `maxBytes` */
export function refuseOversizedBody(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * @param memory shared by all bodies that are being received
 * @returns the bytes of the body; empty if there is none
 * @throws GatewayError BODY_TOO_LARGE as soon as more than `maxBytes` are received; OVERLOADED if the shared memory is
 *   used up; REQUEST_TIMEOUT if the client disconnects first; or the error with which the listener has failed the request
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  memory: BodyMemoryBudget,
): Promise<Buffer> {
  if (!announcesBody(request) && !request.destroyed) return emptyBody;
  return new Promise((resolve, reject) => {
    const body = createBodyBuffer();
    const allocation = memory.register(() => stop(memoryExhausted()));
    const stop = (error: GatewayError) => {
      allocation.release();
      body.discard();
      request.removeAllListeners('data');
      reject(error);
    };
    const fail = (cause: unknown) => stop(cause instanceof GatewayError ? cause : incomplete(cause));
    if (request.destroyed) return fail(request.errored); // its events were emitted before
    request.on('data', (chunk: Buffer) => {
      if (body.append(chunk) > maxBytes) stop(tooLarge(maxBytes));
      else allocation.grow(chunk.length);
    });
    request.on('end', () => {
      allocation.release();
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

function memoryExhausted(): GatewayError {
  return new GatewayError(
    'OVERLOADED',
    'Too much is being sent at the same time; nothing was sent on. Try again.',
  );
}

function incomplete(cause: unknown): GatewayError {
  return new GatewayError('REQUEST_TIMEOUT', 'The request was not sent to its end.', { cause });
}
