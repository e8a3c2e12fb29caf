/** The listener of the public API: limits and timeouts of its connections, and responses to input that is not HTTP. */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { TLSSocket, type TlsOptions } from 'node:tls';
import { GatewayError } from '../request/errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type ConnectionLimits, createConnections } from './connection.ts';
import { isRtsp } from './request-protocol.ts';
import { type ErrorResponse, errorResponse as formatError, lingerMs } from './write-error.ts';

/** Limits of one connection, and of all connections together. Times in milliseconds. */
interface ListenerLimits extends ConnectionLimits {
  /** For the head of a request, and for the whole request. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How often these two are checked. */
  readonly connectionsCheckingInterval: number;
  /** How long a connection may be idle between two requests. */
  readonly keepAliveTimeout: number;
  /** Bytes of the request line and the headers. */
  readonly maxHeaderSize: number;
}

/** As Envoy, HAProxy and nginx advise for a server at the edge. */
export const defaultListenerLimits: ListenerLimits = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
  writeTimeout: 30_000,
  maxUnreadBytes: 256 * 1024 * 1024,
  maxConnections: 5_000,
};

export interface Listener {
  /** To be opened with `openServer`. */
  readonly server: Server;
  /** From now on, every response whose head is not sent yet closes its connection. */
  drain(): void;
  /** Accepts no more connections, and closes when all requests that were received have their responses. */
  close(): Promise<void>;
}

interface ListenerOptions {
  readonly limits?: ListenerLimits;
  /** Makes the server speak TLS. */
  readonly tls?: TlsOptions | undefined;
  /** The response to input that is not an HTTP request; by default that for TPP systems, without a link. */
  readonly errorResponse?: (error: GatewayError) => ErrorResponse;
}

/**
 * A server that passes every request to `serve`, including those with `Expect` or `Upgrade`.
 *
 * @param onUnreadable called with the error when input is answered here, because it is not an HTTP request
 */
export function createListener(
  serve: RequestListener,
  onUnreadable: (error: GatewayError) => void,
  {
    limits = defaultListenerLimits,
    tls,
    errorResponse = (error) => tppErrorResponse(error),
  }: ListenerOptions = {},
): Listener {
  // RequestHead checks Host: Node's own refusal is not in the format of the standard.
  const settings = { ...limits, requireHostHeader: false };
  const server = tls ? createTlsServer({ ...settings, ...tls }) : createServer(settings);
  // 0 = no limit: RequestHead counts the fields, where Node silently drops those above its limit.
  server.maxHeadersCount = 0;
  // A TPP that has ended its side of the connection still gets its response. Node's types do not know the property.
  Object.assign(server, { httpAllowHalfOpen: true });

  const connections = createConnections(server, serve, limits);
  const speaksHttp = createProtocolCheck();
  const receive: RequestListener = (request, response) => {
    if (!speaksHttp(request)) request.httpVersion = 'RTSP'; // RequestHead refuses it
    // No request is served behind an Upgrade: Node drops the rest of the packet, and would continue inside of a request.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    request.on('error', ignore); // readBody handles it; without any listener Node would throw
    connections.enqueue(request, response);
  };
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);

  const fail = (socket: Socket, error: GatewayError, isForHead = false) =>
    connections.fail(socket, error, () => {
      if (!socket.writable) return;
      onUnreadable(error);
      endAndLinger(socket, serialize(errorResponse(error), isForHead));
    });
  server.on('connect', (_request, socket: Socket) => fail(socket.on('error', ignore), tunnelRefused()));
  server.on('clientError', (cause: ParseError, socket: Socket) => {
    const inHandshake = socket instanceof TLSSocket && socket.getProtocol() === null;
    if (inHandshake || cause.code === 'ECONNRESET') socket.destroy();
    else if (socket.writable) fail(socket, parseError(cause), isInHeadRequest(cause));
    // Otherwise the last response is being sent, and closes the connection. To destroy the socket now, with unread input, would
    // reset the connection, and the reset would overtake the response.
  });
  return { server, drain: connections.drain, close: () => closeServer(server, connections.closeIdle) };
}

export interface ListenOptions {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** Whether other processes of this user may listen on the same port (SO_REUSEPORT; Linux and some others). */
  readonly reusePort?: boolean;
}

/** @returns the port. Rejects if it is not available. */
export function openServer(server: Server, options: ListenOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port); // an address object, because it listens on a port
    });
  });
}

/** Interval of `closeIdle`, in milliseconds. A request that is on its way on a new connection arrives before the first call. */
const closeIdleMs = 100;

/**
 * Accepts no more connections, and closes when none is left.
 *
 * @param closeIdle closes the connections without a pending response. Node's `closeIdleConnections` does not fit: it counts
 *   a connection that was never used as busy, and one whose response is still being sent as idle.
 */
export function closeServer(
  server: Server,
  closeIdle: () => void = () => server.closeAllConnections(),
): Promise<void> {
  return new Promise((resolve) => {
    // Timers run before the sockets are read. After a long task, `setImmediate` lets Node read the requests that have arrived
    // before their connections count as idle.
    const timer = setInterval(() => setImmediate(closeIdle), closeIdleMs);
    // Not `http.Server.close`: it stops the timeouts of slow senders. At the end, it stops Node's timer for them, which would keep
    // the server in memory.
    Reflect.apply(NetServer.prototype.close, server, [
      () => {
        clearInterval(timer);
        server.close();
        resolve();
      },
    ]);
  });
}

/** Minimum interval between two log lines about refused connections. Milliseconds. */
const refusalLogIntervalMs = 60_000;

/** Counts and logs the connections that the server closes because there are too many. */
/** @returns when a connection was refused last: milliseconds of `performance.now()` */
export function reportRefusedConnections(server: Server, log: Log, metrics: Metrics): () => number {
  let refusedAtMs = Number.NEGATIVE_INFINITY;
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    metrics.increment('penstock_connections_refused_total', {});
    refusedAtMs = performance.now();
    if (refusedAtMs - loggedAtMs < refusalLogIntervalMs) return;
    loggedAtMs = refusedAtMs;
    log('warn', 'refusing connections: the connection limit is reached and no connection is idle');
  });
  return () => refusedAtMs;
}

/**
 * Checks each request with version 1.0, which is that of RTSP, and the first one of each connection. The check copies the packet,
 * which takes several microseconds: too much for every request.
 */
function createProtocolCheck(): (request: IncomingMessage) => boolean {
  const known = new WeakSet<Socket>();
  return (request) => {
    if (request.httpVersion !== '1.0' && known.has(request.socket)) return true;
    known.add(request.socket);
    return !isRtsp(request);
  };
}

/** Sends the last bytes of a connection, and discards what is still received: a reset would overtake them. */
function endAndLinger(socket: Socket, lastBytes: string): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket
    .once('close', () => clearTimeout(timer))
    .resume()
    .end(lastBytes);
}

function ignore(): void {}

function parseError(cause: NodeJS.ErrnoException): GatewayError {
  switch (cause.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError('HEADERS_TOO_LARGE', 'The request line and headers exceed 16 KiB.', {
        cause,
      });
    case 'HPE_INVALID_EOF_STATE':
      return new GatewayError('REQUEST_TIMEOUT', 'The request is incomplete.', { cause });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('REQUEST_TIMEOUT', 'The request was not complete before the time limit.', {
        cause,
      });
    default:
      return new GatewayError('HEADER_MALFORMED', 'The request is not valid HTTP/1.1.', { cause });
  }
}

/** What Node's parser adds to its errors. */
interface ParseError extends NodeJS.ErrnoException {
  /** The bytes that were being parsed; without those that arrived before. */
  readonly rawPacket?: Buffer;
  /** How many of them are valid. */
  readonly bytesParsed?: number;
}

/**
 * Whether the parser has failed in the head of a HEAD request, whose response must not have a body (RFC 9110 section 9.3.2). It does
 * not report the method. If the request line has arrived in an earlier packet, the method is not known: the response then has a body,
 * which the client discards with the connection.
 */
function isInHeadRequest({ rawPacket, bytesParsed = 0 }: ParseError): boolean {
  if (!rawPacket) return false;
  const lineEnd = rawPacket.indexOf('\n', bytesParsed);
  const parsed = rawPacket.toString('latin1', 0, lineEnd < 0 ? rawPacket.length : lineEnd);
  return Array.from(parsed.matchAll(requestLines)).at(-1)?.[1] === 'HEAD';
}

/** The beginnings of request lines, and not of header fields. The body of the request before may end on the same line. */
const requestLines =
  /(?:^|(?<![\sA-Z-])(?=[A-Z]+ \/))(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT) (?!\S*:\s)/gm;

function tunnelRefused(): GatewayError {
  return new GatewayError('METHOD_NOT_ALLOWED', 'The gateway does not support CONNECT.', {
    headers: [['Allow', '']],
  });
}

/** The response for TPP systems, in the format of the standard. @param errorPageUrl see `ErrorContext` */
export const tppErrorResponse = (error: GatewayError, errorPageUrl: string | null = null): ErrorResponse =>
  formatError(error, { requestId: randomUUID(), accept: undefined, errorPageUrl });

/** The bytes of a response, for a connection on which Node has no response object. @param isForHead leaves out the body */
function serialize({ status, reason, headers, body }: ErrorResponse, isForHead: boolean): string {
  const fields = [...headers, ['Content-Length', String(body.length)], ['Connection', 'close']];
  return `HTTP/1.1 ${status} ${reason}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${isForHead ? '' : body}`;
}
