/**
 * The transport to one environment of the bank: http-proxy-middleware with a promise interface. The only file that imports it.
 *
 * The proxy receives a request and a response object of our own, detached from the TPP's connection: a TPP that disconnects
 * cannot abort a payment, and only the fields and bytes of the outbound request are sent. The call (upstream-call.ts) handles
 * deadlines, responses and errors.
 */

import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Stream } from 'node:stream';
import { createProxyMiddleware } from 'http-proxy-middleware';
import type { FixedValues } from '../config/fixed-values.ts';
import { hostWithoutBrackets } from '../config/values.ts';
import { type HeaderField, type HeaderFields, isSameName, withFields } from '../pis/headers.ts';
import { type Lane, mayHaveBody } from '../pis/operations.ts';
import { withQueryParameters } from '../pis/query.ts';
import { createBatchScheduler } from '../request/batch-scheduler.ts';
import { emptyBody } from '../request/body-buffer.ts';
import { createDeadlines } from '../request/deadlines.ts';
import { endWithBody } from '../request/end-with-body.ts';
import { GatewayError, outcomeUnknown } from '../request/errors.ts';
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
  /** The transport releases the body of a write at its deadline. */
  body: Buffer;
  /** When the response must be complete: milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** Written when the connection is established, before the first byte is sent. */
  readonly sendingMark?: OutboundSendingMark | undefined;
  /** Receives every attempt. */
  readonly recordEvent?: RecordEvent | undefined;
  /** Called after the last byte was written; again after a retry. */
  readonly onSent?: (() => void) | undefined;
}

export interface Transport {
  /**
   * Sends one request. Follows no redirects. Retries once where the bank cannot act twice (retry.ts).
   *
   * @throws GatewayError UPSTREAM_UNREACHED or QUEUE_TIMEOUT (nothing was sent), UPSTREAM_MALFORMED or OUTCOME_UNKNOWN
   *   (the bank may have seen the request); LateResponseError at the deadline of a write that was sent
   */
  send(request: OutboundRequest): Promise<BankResponse>;
}

/** OUTCOME_UNKNOWN at the deadline of a write that was sent. */
export class LateResponseError extends GatewayError {
  /** Settles when the write ends: with its late response, or with an error. */
  readonly response: Promise<BankResponse>;

  constructor(response: Promise<BankResponse>) {
    const { code, message } = outcomeUnknown();
    super(code, message);
    this.response = response;
  }
}

interface TransportTimes {
  /** Longest time to establish a connection. */
  readonly connectMs: number;
  /** A write reuses only connections that were idle for less than this. */
  readonly writeSocketIdleMs: number;
}

/** A call past its deadline, which waits for a late response. */
interface LateCall {
  readonly call: UpstreamCall;
  readonly tenant: string | undefined;
}

/** One `send`, which makes one or two attempts. */
interface Sending {
  readonly outbound: OutboundRequest;
  resolve: (response: BankResponse) => void;
  reject: (error: GatewayError) => void;
}

/** @param currentPool the pool for the next attempt; replaced together with the client certificate */
export function createTransport(
  environment: Pick<Environment, 'origin'>,
  currentPool: () => ConnectionPool,
  { connectMs, writeSocketIdleMs }: TransportTimes,
): Transport {
  const setDeadline = createDeadlines();
  /** How many calls have a connection or wait for one. */
  let activeCalls = 0;
  /** Oldest first. */
  const lateCalls = createLinkedList<LateCall>();
  const inNextBatch = createBatchScheduler();
  const target = targetOf(environment);
  let pool = currentPool();
  let proxy = createProxy(pool);

  function createProxy(agent: ConnectionPool) {
    return createProxyMiddleware({
      target,
      changeOrigin: true,
      agent,
      selfHandleResponse: true,
      ejectPlugins: true,
      buffer: new EmptyBody(),
      pathFilter: () => true,
      plugins: [
        (server) => {
          server.on('start', (request) => detachedRequestIn(request)?.setPath());
          server.on('proxyReq', (sent, request) => callOf(request)?.onConnection(sent));
          server.on('proxyRes', (response, request) => callOf(request)?.onResponse(response));
          server.on('econnreset', (cause, request) => callOf(request)?.onError(cause));
          server.on('error', (cause, request) => callOf(request)?.onError(cause));
        },
      ],
    });
  }

  function attempt(sending: Sending, attemptNumber: number): void {
    const { outbound } = sending;
    const { lane, tenant, deadlineAtMs, sendingMark } = outbound;
    const startedAtMs = performance.now();
    if (pool !== currentPool()) {
      pool = currentPool();
      proxy = createProxy(pool);
    }
    if (activeCalls >= pool.maxSockets) cancelLateCall();
    if (lane === 'write') pool.closeIdle(writeSocketIdleMs);
    const response = new DetachedResponse();
    let removeLate: (() => void) | undefined;
    const onEnd = () => {
      activeCalls -= 1;
      removeLate?.();
    };
    activeCalls += 1;
    const call = createUpstreamCall(
      { deadlineAtMs, connectMs, sendingMark },
      {
        sendBytes(sent) {
          endWithBody(sent, outbound.body);
          outbound.onSent?.();
        },
        onResponse(bankResponse, connection) {
          onEnd();
          const event = callEvent(attemptNumber, startedAtMs, connection);
          outbound.recordEvent?.({ ...event, status: bankResponse.status });
          sending.resolve(bankResponse);
        },
        onFailure(error, connection) {
          onEnd();
          const event = callEvent(attemptNumber, startedAtMs, connection);
          outbound.recordEvent?.({ ...event, error: error.code });
          if (
            attemptNumber > 1 ||
            !mayRetry({ lane, error, ...connection, remainingMs: deadlineAtMs - performance.now() })
          )
            return sending.reject(error);
          currentPool().closeIdle(0); // the bank may have closed the other idle connections too: retry on a new one
          outbound.recordEvent?.({ what: 'retry', why: error.code });
          attempt(sending, attemptNumber + 1);
        },
        onLate() {
          removeLate = lateCalls.append({ call, tenant });
          becomeLate(sending);
          sendingMark?.onDeadline();
        },
        // The proxy destroys its request when its response closes early: the only way to end a request that has no socket yet.
        closeConnection: () => response.emit('close'),
      },
      setDeadline,
      inNextBatch,
    );
    void proxy(asMessage(new DetachedRequest(outbound, call)), asResponse(response));
  }

  /**
   * Frees the connection of a call past its deadline, which only waits to record a late response: the oldest one of the tenant
   * with most such calls.
   */
  function cancelLateCall(): void {
    const byTenant = [...Map.groupBy(lateCalls.toArray(), ({ tenant }) => tenant).values()];
    const most = byTenant.toSorted((one, other) => other.length - one.length)[0];
    most?.[0]?.call.cancel();
  }

  return {
    send: (outbound) =>
      new Promise((resolve, reject) => {
        attempt({ outbound, resolve, reject }, 1);
      }),
  };
}

/** Rejects the promise of a write at its deadline. Its later outcome settles the promise of the late response. */
function becomeLate(sending: Sending): void {
  const { promise, resolve, reject } = Promise.withResolvers<BankResponse>();
  sending.reject(new LateResponseError(promise));
  sending.resolve = resolve;
  sending.reject = reject;
  sending.outbound.body = emptyBody; // the call may wait for minutes
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

/** Adds the fixed fields and parameters of the environment to every request, in place of the TPP's. */
export function withFixedValues(transport: Transport, fixed: FixedValues): Transport {
  if (fixed.headers.length + fixed.query.length === 0) return transport;
  return {
    send: (outbound) =>
      transport.send({
        ...outbound,
        path: withQueryParameters(outbound.path, fixed.query),
        headers: withFields(outbound.headers, fixed.headers),
      }),
  };
}

/** Signs every request with the current signer. */
export const signed = (transport: Transport, currentSigner: () => RequestSigner): Transport => ({
  send: async (outbound) => transport.send({ ...outbound, headers: await currentSigner().sign(outbound) }),
});

/**
 * The target as plain values: the proxy reads it ten times for each call, and the properties of a `URL` are computed. The
 * host name has no brackets around an IPv6 address.
 */
function targetOf({ origin }: Pick<Environment, 'origin'>) {
  const { protocol, host, hostname, port } = new URL(origin);
  return { protocol, host, hostname: hostWithoutBrackets(hostname), port, pathname: '' };
}

/**
 * The members of a request that the proxy uses; the request has neither a connection nor a body. An `IncomingMessage` costs five
 * times as much.
 */
class DetachedRequest {
  readonly call: UpstreamCall;
  readonly method: string;
  /** Empty until the proxy emits `start`: before that, it would parse a path as a URL for its filter. */
  url = '';
  readonly headers: NodeHeaders;
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly #path: string;

  constructor({ method, path, headers, body }: OutboundRequest, call: UpstreamCall) {
    this.call = call;
    this.method = method;
    this.#path = path;
    this.headers = toNodeHeaders(headers);
    if (body.length > 0 || mayHaveBody({ method })) this.headers['content-length'] = String(body.length);
  }

  setPath(): void {
    this.url = this.#path;
  }

  /** The proxy adds listeners for errors. This request emits no events. */
  on(): this {
    return this;
  }
}

/** The members of a response that the proxy uses. It writes nothing to this response, and listens for `close`. */
class DetachedResponse extends EventEmitter {
  readonly headersSent = false;
  /** So that the proxy adds no listeners to the bank's response: the call has its own. */
  readonly finished = true;
  readonly writableFinished = false;
}

// These casts are necessary because the proxy's types accept only complete messages of Node.
const asMessage = (request: DetachedRequest) => request as unknown as IncomingMessage;
const asResponse = (response: DetachedResponse) => response as unknown as ServerResponse;

const detachedRequestIn = (request: unknown) => (request instanceof DetachedRequest ? request : undefined);
const callOf = (request: unknown) => detachedRequestIn(request)?.call;

/** The body that the proxy pipes to the bank. It pipes nothing: the call writes head and body itself when it may send. */
class EmptyBody extends Stream {
  override pipe<Destination>(destination: Destination): Destination {
    return destination;
  }
}

/**
 * The fields of a message by name. Inherits no names, like `Object.create(null)`. Unlike that, it has a hidden class, and is
 * therefore faster to copy and to traverse, which the proxy and Node do several times.
 */
class NodeHeaders {
  [name: string]: string | string[];
}
Object.setPrototypeOf(NodeHeaders.prototype, null);
Reflect.deleteProperty(NodeHeaders.prototype, 'constructor');

/** Converts fields to the form of node:http: one entry for each name, as first written, with repeated fields as a list. */
function toNodeHeaders(fields: HeaderFields): NodeHeaders {
  const headers = new NodeHeaders();
  for (const field of fields) {
    const [name] = firstOfSameName(fields, field);
    const earlier = headers[name];
    headers[name] = earlier === undefined ? field[1] : [earlier, field[1]].flat();
  }
  return headers;
}

function firstOfSameName(fields: HeaderFields, wanted: HeaderField): HeaderField {
  for (const field of fields) if (field === wanted || isSameName(field[0], wanted[0])) return field;
  return wanted;
}
