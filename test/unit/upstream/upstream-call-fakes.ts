/** Fake sockets, requests and responses of node:http, for calls to the bank. */

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { type ClientRequest, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, mock } from 'node:test';
import { TLSSocket } from 'node:tls';
import type { BatchScheduler } from '../../../src/request/batch-scheduler.ts';
import type { SetDeadline } from '../../../src/request/deadlines.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import {
  type BankResponse,
  createUpstreamCall,
  type OutboundSendingMark,
  type UpstreamCall,
} from '../../../src/upstream/upstream-call.ts';

/** A call and its outcome. */
export interface CallUnderTest {
  readonly call: UpstreamCall;
  /** At most one. */
  readonly outcomes: readonly (BankResponse | GatewayError)[];
  /** How often the request was sent. */
  readonly sentCount: () => number;
  /** How often the connection was closed. */
  readonly closedCount: () => number;
}

/** Starts a call with a deadline in `totalMs` and a connect timeout of 100 ms. @param sendingMark of a write @param inNextBatch at once by default */
export function startCall(
  totalMs = 1_000,
  sendingMark?: OutboundSendingMark,
  inNextBatch: BatchScheduler = (run) => run(),
): CallUnderTest {
  const outcomes: (BankResponse | GatewayError)[] = [];
  let closed = 0;
  let sent = 0;
  const call = createUpstreamCall(
    { deadlineAtMs: performance.now() + totalMs, connectMs: 100, sendingMark },
    {
      onResponse: (response) => void outcomes.push(response),
      onFailure: (error) => void outcomes.push(error),
      sendBytes: () => {
        sent += 1;
      },
      onLate: () => sendingMark?.onDeadline(),
      closeConnection: () => {
        closed += 1;
      },
    },
    setFakeDeadline,
    inNextBatch,
  );
  return { call, outcomes, sentCount: () => sent, closedCount: () => closed };
}

/** With a timer of its own, which tests can fake. */
export const setFakeDeadline: SetDeadline = (atMs, onDeadline) => {
  const timer = setTimeout(onDeadline, Math.max(0, Math.ceil(atMs - performance.now())));
  return () => clearTimeout(timer);
};

/** A socket that is connecting, plain or with TLS. */
export const connectingSocket = () => Object.assign(new Socket(), { connecting: true });
export const connectingTlsSocket = () => Object.assign(new TLSSocket(new Socket()), { connecting: true });

/** A socket that is connected. */
export const connectedSocket = () => new Socket();
export const connectedTlsSocket = () =>
  Object.assign(new TLSSocket(new Socket()), { connecting: false, authorized: true });

/** A request with a socket: the code under test uses only its `socket` and its events. */
export function requestOn(socket: Socket): ClientRequest {
  return Object.assign(new EventEmitter(), { socket }) as unknown as ClientRequest;
}

/** The head of a response; the test pushes its body. */
export function responseHead(status: number, rawHeaders: readonly string[] = []): IncomingMessage {
  const response = new IncomingMessage(new Socket());
  response.statusCode = status;
  response.rawHeaders.push(...rawHeaders);
  return response;
}

/** Ends a response as the parser of node:http does. */
export function completeResponse(response: IncomingMessage): void {
  response.complete = true;
  response.push(null);
}

/** Code and RFC 9209 error type of the failure. */
export function failure({ outcomes }: CallUnderTest): readonly string[] {
  const [error, ...more] = outcomes;
  assert.ok(error instanceof GatewayError);
  assert.equal(more.length, 0);
  return [error.code, error.proxyError];
}

/** The error of a connection that the bank has reset. */
export const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** Fakes the timers and the clocks in every test of the surrounding suite: time passes in `mock.timers.tick` only. */
export function useFakeTime(): void {
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
    mock.method(performance, 'now', () => Date.now());
  });
  afterEach(() => mock.reset());
}
