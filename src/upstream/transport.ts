/**
 * The transport to one environment of the bank: http-proxy-middleware with a promise interface. The only file that imports it.
 *
 * The proxy receives a request and a response object of our own, detached from the TPP's connection: a TPP that disconnects
 * cannot abort a payment, and exactly the bytes that were decided before are sent. Deadlines, responses and errors are
 * handled by the call (upstream-call.ts); the proxy only transports.
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

/** A request to the bank. */
export interface OutboundRequest {
  /** Determines which pooled connections are used, and whether the request may be retried. */
  readonly lane: Lane;
  /** `undefined` for a request of the gateway's own. */
  readonly tenant?: string | undefined;
  readonly method: string;
  /** The whole path, including the base path. */
  readonly path: string;
  /** End-to-end fields; the transport adds `Host` and the framing. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
  /** When the response must be complete: milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** Written when the connection is established, before the first byte is sent. */
  readonly sendingMark?: OutboundSendingMark | undefined;
  /** Receives every attempt. */
  readonly recordEvent?: RecordEvent | undefined;
}

export interface Transport {
  /**
   * Sends one request. Follows no redirects. Retries once where the bank cannot act twice (retry.ts).
   *
   * @throws GatewayError UPSTREAM_UNREACHED or QUEUE_TIMEOUT (nothing was sent), UPSTREAM_MALFORMED or OUTCOME_UNKNOWN
   *   (the bank may have seen the request)
   */
  send(request: OutboundRequest): Promise<BankResponse>;
}

interface TransportTimes {
  /** Longest time to establish a connection. */
  readonly connectMs: number;
  /** A write reuses only connections that were idle for less than this. */
  readonly writeSocketIdleMs: number;
}

interface ActiveCall {
  readonly call: UpstreamCall;
  readonly tenant: string | undefined;
  /** Milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
}

interface AttemptHandlers {
  readonly onResponse: (response: BankResponse) => void;
  readonly onFailure: (error: GatewayError, connection: ConnectionInfo) => void;
}

/** @param currentPool the pool for the next attempt; replaced together with the client certificate */
export function createTransport(
  environment: Environment,
  currentPool: () => ConnectionPool,
  { connectMs, writeSocketIdleMs }: TransportTimes,
): Transport {
  /** Calls that have a connection or wait for one, oldest first. */
  const activeCalls = createLinkedList<ActiveCall>();
  const inNextBatch = createBatchScheduler();
  const proxies = new WeakMap<ConnectionPool, ReturnType<typeof createProxy>>();

  const createProxy = (agent: ConnectionPool) =>
    createProxyMiddleware({
      target: new URL(environment.origin),
      changeOrigin: true,
      agent,
      selfHandleResponse: true,
      ejectPlugins: true,
      buffer: new EmptyBody(),
      plugins: [
        (proxy) => {
          proxy.on('proxyReq', (sent, request) => callOf(request)?.onConnection(sent));
          proxy.on('proxyRes', (response, request) => callOf(request)?.onResponse(response));
          proxy.on('econnreset', (cause, request) => callOf(request)?.onError(cause));
          proxy.on('error', (cause, request) => callOf(request)?.onError(cause));
        },
      ],
    });

  function attempt(
    outbound: OutboundRequest,
    attemptNumber: number,
    { onResponse, onFailure }: AttemptHandlers,
  ): void {
    const startedAtMs = performance.now();
    const end = (connection: ConnectionInfo, outcome: Pick<CallEvent, 'status' | 'error'>) => {
      unlink();
      outbound.recordEvent?.({ ...callEvent(attemptNumber, startedAtMs, connection), ...outcome });
    };
    const pool = currentPool();
    const proxy = proxies.get(pool) ?? createProxy(pool);
    proxies.set(pool, proxy);
    if (activeCalls.size() >= pool.maxSockets) cancelLateCall();
    if (outbound.lane === 'write') pool.closeIdle(writeSocketIdleMs);
    const request = detachedRequest(outbound);
    const response = new ServerResponse(request);
    const { tenant, deadlineAtMs, sendingMark } = outbound;
    const call = createUpstreamCall(
      { deadlineAtMs, connectMs, sendingMark },
      {
        onResponse(bankResponse, connection) {
          end(connection, { status: bankResponse.status });
          inNextBatch(() => onResponse(bankResponse));
        },
        onFailure(error, connection) {
          end(connection, { error: error.code });
          onFailure(error, connection);
        },
        sendBytes: (sent) => sent.end(outbound.body),
        // The proxy destroys its request when its response closes early: the only access before there is a socket.
        closeConnection: () => response.emit('close'),
      },
    );
    const unlink = activeCalls.append({ call, tenant, deadlineAtMs });
    request.call = call;
    void proxy(request, response);
  }

  /**
   * Frees the connection of a call past its deadline, which only waits to record a late response: the oldest one of the tenant
   * with most such calls.
   */
  function cancelLateCall(): void {
    const nowMs = performance.now();
    const late = activeCalls.toArray().filter(({ deadlineAtMs }) => deadlineAtMs < nowMs);
    const byTenant = [...Map.groupBy(late, ({ tenant }) => tenant).values()];
    const most = byTenant.toSorted((one, other) => other.length - one.length)[0];
    most?.[0]?.call.cancel();
  }

  return {
    send: (outbound) =>
      new Promise((resolve, reject) => {
        const { lane, deadlineAtMs } = outbound;
        attempt(outbound, 1, {
          onResponse: resolve,
          onFailure(error, connection) {
            const failed = { lane, error, ...connection, remainingMs: deadlineAtMs - performance.now() };
            if (!mayRetry(failed)) return reject(error);
            currentPool().closeIdle(0); // the bank may have closed the other idle connections too: retry on a new one
            outbound.recordEvent?.({ what: 'retry', why: error.code });
            attempt(outbound, 2, { onResponse: resolve, onFailure: reject });
          },
        });
      }),
  };
}

function callEvent(attempt: number, startedAtMs: number, connection: ConnectionInfo): CallEvent {
  const { reusedSocket, connectMs, firstByteMs } = connection;
  const usedConnection = reusedSocket ? 'reused' : 'new';
  return {
    what: 'call',
    attempt,
    connection: connectMs === undefined ? 'none' : usedConnection,
    ...(connectMs !== undefined && { connectMs }),
    ...(firstByteMs !== undefined && { firstByteMs }),
    totalMs: performance.now() - startedAtMs,
  };
}

/** Signs every request with the current signer. */
export const signed = (transport: Transport, currentSigner: () => RequestSigner): Transport => ({
  send: async (outbound) => transport.send({ ...outbound, headers: await currentSigner().sign(outbound) }),
});

class DetachedRequest extends IncomingMessage {
  call?: UpstreamCall;
}

function detachedRequest({ method, path, headers, body }: OutboundRequest): DetachedRequest {
  const request = new DetachedRequest(unconnectedSocket);
  request.method = method;
  request.url = path;
  request.headers = toNodeHeaders(headers);
  if (body.length > 0 || method === 'POST') request.headers['content-length'] = String(body.length);
  return request;
}

/** Never connected: node:http only requires that a message has a socket. */
const unconnectedSocket = new Socket();

const callOf = (request: unknown) => (request instanceof DetachedRequest ? request.call : undefined);

/** The body that the proxy pipes: none, because the call writes head and body itself when it may send. */
class EmptyBody extends Stream {
  override pipe<Destination>(destination: Destination): Destination {
    return destination;
  }
}

/** Converts fields to the form of node:http: one entry for each name, with repeated fields as a list. */
function toNodeHeaders(fields: HeaderFields): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null);
  const names = new Map<string, string>(); // as first written, by lower-case name
  for (const [name, value] of fields) {
    const firstName = names.get(lowerCase(name));
    if (firstName === undefined) {
      names.set(lowerCase(name), name);
      headers[name] = value;
    } else headers[firstName] = [headers[firstName] ?? [], value].flat();
  }
  return headers;
}
