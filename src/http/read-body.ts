/** Reads the body of a request within its limits, as the bytes that were sent. */

import type { IncomingMessage } from 'node:http';
import { createBodyBuffer } from '../request/body-buffer.ts';
import { GatewayError } from '../request/errors.ts';
import type { BodyMemoryBudget } from './body-memory-budget.ts';
import type { RequestHead } from './request-head.ts';

/** @throws GatewayError BODY_TOO_LARGE if the head announces more than `maxBytes` */
export function refuseOversizedBody(contentLength: string | undefined, maxBytes: number): void {
  if (Number(contentLength ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/**
 * The body, if it has arrived completely, as nearly every body has when its request starts. Reading it needs neither listeners nor
 * a promise.
 *
 * @returns `undefined` if `readBody` must wait for the rest of the body, or refuse it
 */
export function arrivedBody(request: IncomingMessage, maxBytes: number): Buffer | undefined {
  if (!request.complete || request.destroyed) return undefined;
  if (request.readableLength === 0 || request.readableLength > maxBytes) return undefined;
  return request.read();
}

/**
 * Reads a body that the head announces.
 *
 * @param context receives the body
 * @param memory shared by all bodies that are being received
 * @throws GatewayError BODY_TOO_LARGE as soon as more than `maxBytes` are received; OVERLOADED if the shared memory is
 *   used up; REQUEST_TIMEOUT if the client disconnects first; or the error with which the listener has failed the request
 */
export function readBody<Context extends { body: Buffer }>(
  context: Context,
  request: IncomingMessage,
  maxBytes: number,
  memory: BodyMemoryBudget,
): Promise<Context> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(incompleteRequest(request.errored)); // its events were emitted before
    const body = createBodyBuffer();
    const allocation = memory.register(() => stop(memoryExhausted()));
    const stop = (error: GatewayError) => {
      allocation.release();
      body.discard();
      request.removeAllListeners('data');
      reject(error);
    };
    const fail = (cause: unknown) => stop(incompleteRequest(cause));
    request.on('data', (chunk: Buffer) => {
      if (body.append(chunk) > maxBytes) stop(tooLarge(maxBytes));
      else allocation.grow(chunk.length);
    });
    request.on('end', () => {
      allocation.release();
      context.body = body.toBuffer();
      resolve(context);
    });
    request.on('error', fail);
    request.on('close', () => {
      if (!request.readableEnded) fail(undefined); // an error for every request would cost more than reading it
    });
  });
}

/** Whether a request has a body of at least one byte, as far as that is known now: the first chunk may be the last one. */
export const hasBody = (request: IncomingMessage, { contentLength }: RequestHead): boolean =>
  Number(contentLength ?? 0) > 0 || request.readableLength > 0;

/**
 * Waits for the end of a chunked body of a request that must not have a body: some clients and proxies send one of zero bytes with
 * each GET and DELETE.
 *
 * @returns `context`; a promise of it if the end has not arrived
 * @throws GatewayError `unexpected` at the first byte; REQUEST_TIMEOUT if the client disconnects first; or the error with which the
 *   listener has failed the request
 */
export function awaitEmptyBody<Context>(
  context: Context,
  request: IncomingMessage,
  unexpected: () => GatewayError,
): Context | Promise<Context> {
  if (request.complete && !request.destroyed && request.readableLength === 0) return context;
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(incompleteRequest(request.errored)); // its events were emitted before
    request
      .once('data', () => reject(unexpected()))
      .once('end', () => resolve(context))
      .once('error', (cause) => reject(incompleteRequest(cause)))
      .once('close', () => reject(incompleteRequest(undefined)));
  });
}

/** @param cause the error with which the listener has failed the request, or that of the connection */
export function incompleteRequest(cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  return new GatewayError('REQUEST_TIMEOUT', 'The request is incomplete.', { cause });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError('BODY_TOO_LARGE', `The body exceeds the limit of ${maxBytes} bytes.`);
}

function memoryExhausted(): GatewayError {
  return new GatewayError(
    'OVERLOADED',
    'The gateway is receiving too many bodies at the same time; nothing was sent to the bank. Try again.',
  );
}
