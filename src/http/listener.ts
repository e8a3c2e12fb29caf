/** The TPP systems' door to the network: limits and time-outs of connections, and answers to what is not even HTTP. */

import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket, type TlsOptions } from 'node:tls';
import { GatewayError } from '../request/errors.ts';
import { createRequestQueue, createSlowReaderLimit, limitConnections } from './connection.ts';
import { type ErrorResponse, errorResponse, lingerMs } from './write-error.ts';

/** What one connection may take, and all of them together. Times in milliseconds. */
interface ListenerLimits {
  /** For a request's head, and for the whole of it. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How often the two are looked at. */
  readonly connectionsCheckingInterval: number;
  /** How long a connection may rest between two requests. */
  readonly keepAliveTimeout: number;
  /** Bytes of the request line and header. */
  readonly maxHeaderSize: number;
  /** How long a TPP may take nothing of its answer. */
  readonly writeTimeout: number;
  /** Bytes of all answers that TPPs have not taken yet. */
  readonly maxUnread: number;
  /** How many connections there are at most. */
  readonly maxConnections: number;
}

/** As Envoy, HAProxy and nginx advise for a server at the edge. */
export const defaultListenerLimits: ListenerLimits = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
  writeTimeout: 30_000,
  maxUnread: 256 * 1024 * 1024,
  maxConnections: 5_000,
};

/** The door, and how it is closed without a failed request. */
export interface Listener {
  readonly server: Server;
  /** From now on every answer, of running requests too, asks the TPP to take another connection. */
  drain(): void;
  /** Whether an answer on this connection is still to be written, or still being sent. */
  isBusy(socket: Socket): boolean;
}

/**
 * A server whose requests all go to `serve`, whatever they expect or want to upgrade to.
 *
 * @param unreadable told of what could not be read as a request at all, and was answered here
 * @param tls        makes it speak TLS
 */
export function createListener(
  serve: RequestListener,
  unreadable: (error: GatewayError) => void,
  limits = defaultListenerLimits,
  tls?: TlsOptions,
): Listener {
  // The door asks for a Host itself: Node would refuse in words of its own.
  const settings = { ...limits, requireHostHeader: false };
  const server = tls ? createTlsServer({ ...settings, ...tls }) : createServer(settings);
  // 0 = no limit: the door counts and refuses, where Node would silently drop what is beyond.
  server.maxHeadersCount = 0;
  // A TPP may end its side when it has asked, and still gets its answer. Node's types do not know the property.
  Object.assign(server, { httpAllowHalfOpen: true });

  const room = limitConnections(server, limits.maxConnections);
  const watchReader = createSlowReaderLimit(limits);
  const turns = createRequestQueue((request, answer) => {
    watchReader(answer);
    serve(request, answer);
  }, room.markIdle);
  const take: RequestListener = (request, answer) => {
    room.markActive(request.socket);
    // Nothing is served behind a wish to upgrade: Node drops what came in the same packet, and would go on in the middle of a request.
    if (request.headers.upgrade !== undefined) answer.shouldKeepAlive = false;
    request.on('error', ignored); // whoever reads the body is told as well; without a listener Node would throw
    turns.enqueue(request, answer);
  };
  server.on('request', take).on('checkContinue', take).on('checkExpectation', take);

  const givenUp = new WeakSet<Socket>();
  const giveUp = (socket: Socket, error: GatewayError) => {
    if (givenUp.has(socket)) return; // the parser fails again with every packet that follows
    givenUp.add(socket);
    const answerHere = () => {
      if (!socket.writable) return;
      unreadable(error);
      endAndLinger(socket, raw(error));
    };
    const exchange = turns.latestOn(socket);
    if (!exchange || exchange.answer.writableFinished) return answerHere();
    // The fault lies in what follows on the connection: the running request gets its answer first.
    if (exchange.request.complete) return exchange.answer.once('finish', answerHere);
    turns.failLatest(socket, error);
  };
  server.on('connect', (_request, socket: Socket) => giveUp(socket.on('error', ignored), noTunnels()));
  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => {
    const inHandshake = socket instanceof TLSSocket && socket.getProtocol() === null;
    if (inHandshake || cause.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else giveUp(socket, protocolError(cause));
  });
  return { server, drain: turns.drain, isBusy: turns.isBusy };
}

/** Says the last words on a connection, and reads over what is still coming: a reset would overtake them. */
function endAndLinger(socket: Socket, lastWords: string): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket
    .once('close', () => clearTimeout(timer))
    .resume()
    .end(lastWords);
}

function ignored(): void {}

function protocolError(cause: NodeJS.ErrnoException): GatewayError {
  switch (cause.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new GatewayError('HEADERS_TOO_LARGE', 'The request line and headers are larger than 16 KiB.', {
        cause,
      });
    case 'HPE_INVALID_EOF_STATE':
      return new GatewayError('REQUEST_TIMEOUT', 'The request was not sent to its end.', { cause });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new GatewayError('REQUEST_TIMEOUT', 'The request was not sent to its end in time.', { cause });
    default:
      return new GatewayError('HEADER_MALFORMED', 'This is not a well-formed HTTP/1.1 request.', { cause });
  }
}

function noTunnels(): GatewayError {
  return new GatewayError('METHOD_NOT_ALLOWED', 'This gateway opens no tunnels.', {
    headers: [['Allow', '']],
  });
}

/** An answer for a connection on which Node has no response to write to. */
function raw(error: GatewayError): string {
  const { status, reason, headers, body }: ErrorResponse = errorResponse(error, {
    requestId: randomUUID(),
    accept: undefined,
  });
  const fields = [...headers, ['Content-Length', String(body.length)], ['Connection', 'close']];
  return `HTTP/1.1 ${status} ${reason}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}
