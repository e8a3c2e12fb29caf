/** Stands for what node:http tells about a call to the bank, moment by moment. */

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { type ClientRequest, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, mock } from 'node:test';
import { TLSSocket } from 'node:tls';
import { GatewayError } from '../../../src/request/errors.ts';
import {
  type BankResponse,
  createUpstreamCall,
  type OutboundSendingMark,
  type UpstreamCall,
} from '../../../src/upstream/upstream-call.ts';

/** One followed call, and what it came to. */
export interface CallUnderTest {
  readonly call: UpstreamCall;
  /** What came out, in order: never more than one. */
  readonly outcomes: readonly (BankResponse | GatewayError)[];
  /** How often the bytes were let go. */
  readonly sentCount: () => number;
  /** How often the connection was to be closed. */
  readonly closedCount: () => number;
}

/** Follows a call that may take `totalMs` in all and 100 ms to connect. @param sendingMark of a write */
export function startCall(totalMs = 1_000, sendingMark?: OutboundSendingMark): CallUnderTest {
  const outcomes: (BankResponse | GatewayError)[] = [];
  let abandoned = 0;
  let released = 0;
  const exchange = createUpstreamCall(
    { deadlineAtMs: performance.now() + totalMs, connectMs: 100, sendingMark },
    {
      onResponse: (answer) => void outcomes.push(answer),
      onFailure: (error) => void outcomes.push(error),
      sendBytes: () => {
        released += 1;
      },
      closeConnection: () => {
        abandoned += 1;
      },
    },
  );
  return { call: exchange, outcomes, sentCount: () => released, closedCount: () => abandoned };
}

/** A socket of the pool that is still being connected, in plain or under TLS. */
export const connectingSocket = () => Object.assign(new Socket(), { connecting: true });
export const connectingTlsSocket = () => Object.assign(new TLSSocket(new Socket()), { connecting: true });

/** A socket of the pool that was used before. */
export const connectedSocket = () => new Socket();
export const connectedTlsSocket = () =>
  Object.assign(new TLSSocket(new Socket()), { connecting: false, authorized: true });

/** A request as node:http makes it when it has found a socket: an emitter with a `socket` is all that is looked at. */
export function requestOn(socket: Socket): ClientRequest {
  return Object.assign(new EventEmitter(), { socket }) as unknown as ClientRequest;
}

/** The head of an answer; its body is pushed into it. */
export function responseHead(status: number, rawHeaders: readonly string[] = []): IncomingMessage {
  const answer = new IncomingMessage(new Socket());
  answer.statusCode = status;
  answer.rawHeaders.push(...rawHeaders);
  return answer;
}

/** Ends an answer the way the parser does when all of it has come. */
export function completeResponse(answer: IncomingMessage): void {
  answer.complete = true;
  answer.push(null);
}

/** Code and error type of the one error that came out. */
export function failure({ outcomes }: CallUnderTest): readonly string[] {
  const [error, ...more] = outcomes;
  assert.ok(error instanceof GatewayError);
  assert.equal(more.length, 0);
  return [error.code, error.proxyError];
}

/** What Node tells of a connection that the bank reset. */
export const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** In every test of the suite it is called in, timers go on when the test says so. */
export function useMockTimers(): void {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());
}
