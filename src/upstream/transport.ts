/**
 * The way to one environment of the bank: http-proxy-middleware, made a promise.
 *
 * The proxy is given a request and a response of our own, detached from the TPP's connection: a TPP that
 * leaves cannot tear down a payment on its way, and what goes out is exactly what was decided before.
 * Deadlines, answers and errors are ours (exchange.ts); the proxy only carries.
 */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Stream } from 'node:stream';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { type HeaderFields, lowerCase } from '../pis/headers.ts';
import type { Lane } from '../pis/operations.ts';
import { createBatchScheduler } from '../request/batch-scheduler.ts';
import type { GatewayError } from '../request/errors.ts';
import { createLinkedList } from '../request/linked-list.ts';
import type { Environment } from '../request/messages.ts';
import type { CallEvent, RecordEvent } from '../request/request-events.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { RequestSigner } from './request-signer.ts';
import { mayRetry } from './retry.ts';
import {
  type BankResponse,
  type ConnectionInfo,
  createUpstreamCall,
  type OutboundSendingMark,
  type UpstreamCall,
} from './upstream-call.ts';

/** What is sent, byte for byte. */
export interface OutboundRequest {
  /** Decides about the connection it takes, and whether it may be sent once more. */
  readonly lane: Lane;
  readonly method: string;
  /** The whole path, base path included. */
  readonly path: string;
  /** End-to-end fields; `Host` and the framing are added on the way. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
  /** When the answer must be complete: milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** Holds the request back until a connection is made and this is passed. */
  readonly sendingMark?: OutboundSendingMark;
  /** Told of every attempt. */
  readonly recordEvent?: RecordEvent;
}

export interface Transport {
  /**
   * Sends one request; redirects are not followed. It is sent once more where the bank cannot act twice (retry.ts).
   *
   * @throws GatewayError UPSTREAM_UNREACHED, QUEUE_TIMEOUT (nothing was sent), UPSTREAM_MALFORMED or
   *   OUTCOME_UNKNOWN (the bank may have seen it)
   */
  send(request: OutboundRequest): Promise<BankResponse>;
}

interface ActiveCall {
  readonly call: UpstreamCall;
  /** Milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
}

interface TransportTimes {
  /** How long making a connection may take, in milliseconds. */
  readonly connectMs: number;
  /** A write takes a connection only if it was idle for less, in milliseconds. */
  readonly writeSocketIdleMs: number;
}

/** A transport to `environment`. @param currentPool whose connections each attempt takes: it changes with the certificate */
export function createTransport(
  environment: Environment,
  currentPool: () => ConnectionPool,
  { connectMs, writeSocketIdleMs }: TransportTimes,
): Transport {
  /** Each has a connection or waits for one. */
  const activeCalls = createLinkedList<ActiveCall>();
  const inStep = createBatchScheduler();
  const proxies = new WeakMap<ConnectionPool, ReturnType<typeof proxyOver>>();

  const proxyOver = (agent: ConnectionPool) =>
    createProxyMiddleware({
      target: new URL(environment.origin),
      changeOrigin: true,
      agent,
      selfHandleResponse: true,
      ejectPlugins: true,
      buffer: new EmptyBodyStream(),
      plugins: [
        (proxy) => {
          proxy.on('proxyReq', (sent, request) => callOf(request)?.onConnection(sent));
          proxy.on('proxyRes', (answer, request) => callOf(request)?.onResponse(answer));
          proxy.on('econnreset', (cause, request) => callOf(request)?.onError(cause));
          proxy.on('error', (cause, request) => callOf(request)?.onError(cause));
        },
      ],
    });

  /** A write that is only listened for gives its connection to a call in time: the one listened for longest. */
  function cancelOldestLateCall(): void {
    const nowMs = performance.now();
    activeCalls
      .toArray()
      .find(({ deadlineAtMs }) => deadlineAtMs < nowMs)
      ?.call.cancel();
  }

  function attempt(
    outbound: OutboundRequest,
    number: number,
    done: (answer: BankResponse) => void,
    lost: (error: GatewayError, trace: ConnectionInfo) => void,
  ): void {
    const beganAtMs = performance.now();
    const over = (trace: ConnectionInfo, outcome: Pick<CallEvent, 'status' | 'error'>) => {
      leave();
      outbound.recordEvent?.({ ...callEvent(number, beganAtMs, trace), ...outcome });
    };
    const pool = currentPool();
    const carry = proxies.get(pool) ?? proxyOver(pool);
    proxies.set(pool, carry);
    if (activeCalls.size() >= pool.maxSockets) cancelOldestLateCall();
    if (outbound.lane === 'write') pool.closeIdle(writeSocketIdleMs);
    const request = detachedRequest(outbound);
    const response = new ServerResponse(request);
    // The proxy destroys its request when its response closes early: the only handle it gives before a socket is there.
    const abandon = () => response.emit('close');
    const { deadlineAtMs, sendingMark } = outbound;
    const limits = { deadlineAtMs, connectMs, ...(sendingMark && { sendingMark }) };
    const exchange = createUpstreamCall(limits, {
      onResponse(answer, trace) {
        over(trace, { status: answer.status });
        inStep(() => done(answer));
      },
      onFailure(error, trace) {
        over(trace, { error: error.code });
        lost(error, trace);
      },
      sendBytes: (sent) => sent.end(outbound.body),
      closeConnection: abandon,
    });
    const leave = activeCalls.append({ call: exchange, deadlineAtMs });
    request.call = exchange;
    void carry(request, response);
  }

  return {
    send: (outbound) =>
      new Promise((done, lost) => {
        const { lane, deadlineAtMs } = outbound;
        attempt(outbound, 1, done, (error, trace) => {
          const failed = { lane, error, ...trace, remainingMs: deadlineAtMs - performance.now() };
          if (!mayRetry(failed)) return lost(error);
          currentPool().closeIdle(0); // the other kept connections may be as dead: once more is on a new one
          outbound.recordEvent?.({ what: 'retry', why: error.code });
          attempt(outbound, 2, done, lost);
        });
      }),
  };
}

function callEvent(attempt: number, beganAtMs: number, trace: ConnectionInfo): CallEvent {
  const { reusedSocket, connectMs, firstByteMs } = trace;
  const made = reusedSocket ? 'reused' : 'new';
  return {
    what: 'call',
    attempt,
    connection: connectMs === undefined ? 'none' : made,
    ...(connectMs !== undefined && { connectMs }),
    ...(firstByteMs !== undefined && { firstByteMs }),
    totalMs: performance.now() - beganAtMs,
  };
}

/** The transport with the seal of the moment on every request. */
export const signed = (transport: Transport, currentSigner: () => RequestSigner): Transport => ({
  send: async (outbound) => transport.send({ ...outbound, headers: await currentSigner().sign(outbound) }),
});

/** Never connected: it only gives the detached messages the shape that node:http expects. */
const unconnectedSocket = new Socket();

/** A request that comes from nobody's connection. */
class DetachedRequest extends IncomingMessage {
  call?: UpstreamCall;
}

const callOf = (request: unknown) => (request instanceof DetachedRequest ? request.call : undefined);

function detachedRequest({ method, path, headers, body }: OutboundRequest): DetachedRequest {
  const request = new DetachedRequest(unconnectedSocket);
  request.method = method;
  request.url = path;
  request.headers = toNodeHeaders(headers);
  if (body.length > 0 || method === 'POST') request.headers['content-length'] = String(body.length);
  return request;
}

/** Where the proxy would take the body from. It brings nothing: head and body are written when the exchange lets them go. */
class EmptyBodyStream extends Stream {
  override pipe<Sent>(sent: Sent): Sent {
    return sent;
  }
}

/** The form node:http takes: one entry a name, repeated fields as a list in their order. */
function toNodeHeaders(fields: HeaderFields): Record<string, string | string[]> {
  const byName: Record<string, string | string[]> = Object.create(null);
  const written = new Map<string, string>(); // by the name in lower case
  for (const [name, value] of fields) {
    const known = written.get(lowerCase(name));
    if (known === undefined) {
      written.set(lowerCase(name), name);
      byName[name] = value;
    } else byName[known] = [byName[known] ?? [], value].flat();
  }
  return byName;
}
