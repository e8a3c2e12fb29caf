/** The connections of the listener: one record per socket, for its queued requests, its idle state and its unread response. */

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { type BatchScheduler, createBatchScheduler } from '../request/batch-scheduler.ts';
import type { GatewayError } from '../request/errors.ts';

export interface ConnectionLimits {
  readonly maxConnections: number;
  /** How long a client may read nothing of its response, in milliseconds; detected within twice that. */
  readonly writeTimeout: number;
  /** Bytes of all responses that clients have not read yet. Beyond it, the connections of the oldest ones are closed. */
  readonly maxUnreadBytes: number;
}

export interface Connections {
  /** Queues the next request of a connection. */
  readonly enqueue: RequestListener;
  /**
   * Ends a connection whose input cannot be parsed any further. A request that is still being received gets the error.
   *
   * @param respond called after the responses that are due, unless a request gets the error; at most once per connection
   */
  fail(socket: Socket, error: GatewayError, respond: () => void): void;
  /** From now on, every response whose head is not sent yet closes its connection. */
  drain(): void;
  /** Closes the connections on which no response is due or being sent. */
  closeIdle(): void;
}

/**
 * How many requests may wait on a connection. The response to the last of them closes the connection. Later requests are
 * ignored; if the client sends as many of them again, the socket is closed at once.
 */
export const maxQueuedRequests = 32;

/** Above this part of the limit, idle connections are closed: the rest is a margin for connections that arrive together. */
const nearlyFull = 0.95;

/** Emitted on the socket of a stream that may have unread bytes, or no longer has some: the bytes are counted again. */
export const streamWritten = 'streamWritten';

interface Connection {
  readonly socket: Socket;
  /** The first request is being served. A request whose response closes the connection is not removed. */
  readonly queue: QueuedRequest[];
  /** The request that was received last; `undefined` while no response is due. */
  latest: QueuedRequest | undefined;
  /** How many requests have arrived behind the last one that is served. */
  ignoredRequests: number;
  /** A parse error in the body of the latest request, until that request is started. */
  pendingError: GatewayError | undefined;
  hasFailed: boolean;
  /** Bytes of a response that the client has not read yet. */
  unreadBytes: number;
  /** Listeners that all responses of the connection share: new closures for each response, and `once`, cost more. */
  readonly onHandedOver: () => void;
  readonly onClosed: () => void;
}

interface QueuedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  isStarted: boolean;
}

/**
 * Serves the requests of each connection one after the other, and limits the connections of a server: it closes those beyond
 * `maxConnections` without a response, and emits `drop`.
 *
 * @param serve    called when the previous response of the connection is sent
 * @param schedule starts requests that arrive together in one batch
 */
export function createConnections(
  server: Server,
  serve: RequestListener,
  limits: ConnectionLimits,
  schedule: BatchScheduler = createBatchScheduler(),
): Connections {
  // Connections live long, so they may be in Maps and Sets. These would keep objects of single requests alive (linked-list.ts).
  const connections = new Map<Socket, Connection>();
  const idle = new Set<Connection>(); // longest idle first
  const slowReaders = new Set<Connection>(); // oldest response first
  let totalUnreadBytes = 0;
  let openSockets = 0;
  let draining = false;

  // Without `dropMaxConnection`, workers of node:cluster pass excess connections on to each other.
  Object.assign(server, { maxConnections: limits.maxConnections, dropMaxConnection: true });
  server.on('connection', (socket: Socket) => {
    openSockets++; // TLS handshakes included
    socket.once('close', () => openSockets--);
    if (openSockets > limits.maxConnections * nearlyFull) closeLongestIdle();
  });
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', connectionOf);

  function connectionOf(socket: Socket): Connection {
    const known = connections.get(socket);
    if (known) return known;
    const connection: Connection = {
      socket,
      queue: [],
      latest: undefined,
      ignoredRequests: 0,
      pendingError: undefined,
      hasFailed: false,
      unreadBytes: 0,
      onHandedOver: () => watchReader(connection),
      onClosed: () => finish(connection),
    };
    connections.set(socket, connection);
    socket.on(streamWritten, () => countUnread(connection));
    socket.once('close', () => {
      connections.delete(socket);
      idle.delete(connection);
      forgetUnread(connection);
    });
    return connection;
  }

  function startNext(connection: Connection): void {
    const { socket, queue } = connection;
    const [next] = queue;
    if (!next) {
      connection.latest = undefined;
      if (!socket.destroyed) idle.add(connection);
      return;
    }
    const { request, response } = next;
    response.on('close', connection.onClosed);
    if (draining) response.shouldKeepAlive = false;
    schedule(() => {
      if (response.closed) return; // the client has disconnected
      next.isStarted = true;
      // Emitted when the whole response is handed to the socket, behind all responses before it.
      response.on('prefinish', connection.onHandedOver);
      serve(request, response);
      if (connection.pendingError && next === connection.latest) {
        request.emit('error', connection.pendingError);
      }
    });
  }

  /** Starts the next request after a response has closed. */
  function finish(connection: Connection): void {
    const { socket, queue } = connection;
    if (!queue[0]?.response.shouldKeepAlive || socket.destroyed) return; // no other response can be sent
    queue.shift();
    startNext(connection);
  }

  /** Limits how long a written response waits for its client. */
  function watchReader(connection: Connection): void {
    const { socket, queue } = connection;
    if (!countUnread(connection)) return; // nearly every response fits into the buffers of the system
    // Node destroys the socket if nothing was read between two checks.
    socket.setTimeout(limits.writeTimeout);
    // Before Node's own listener, which sets the timeout of the idle connection.
    queue[0]?.response.prependOnceListener('finish', () => {
      forgetUnread(connection);
      socket.setTimeout(0);
    });
  }

  /** Limits how many bytes wait on all connections. @returns whether some wait on this one */
  function countUnread(connection: Connection): boolean {
    const bytes = connection.socket.writableLength;
    if (bytes === 0) {
      forgetUnread(connection);
      return false;
    }
    totalUnreadBytes += bytes - connection.unreadBytes;
    connection.unreadBytes = bytes;
    slowReaders.add(connection);
    for (const oldest of slowReaders) {
      if (totalUnreadBytes <= limits.maxUnreadBytes) break;
      if (oldest.socket.writableLength > 0) oldest.socket.destroy(); // the client of a stream may have read it since
      forgetUnread(oldest);
    }
    return true;
  }

  function forgetUnread(connection: Connection): void {
    if (!slowReaders.delete(connection)) return;
    totalUnreadBytes -= connection.unreadBytes;
    connection.unreadBytes = 0;
  }

  function closeLongestIdle(): void {
    const [longest] = idle;
    if (!longest) return;
    longest.socket.destroy();
    idle.delete(longest);
  }

  return {
    enqueue(request, response) {
      const connection = connectionOf(request.socket);
      const { socket, queue } = connection;
      idle.delete(connection);
      if (queue.at(-1)?.response.shouldKeepAlive === false) {
        if (++connection.ignoredRequests > maxQueuedRequests) socket.destroy();
        return;
      }
      connection.latest = { request, response, isStarted: false };
      queue.push(connection.latest);
      if (queue.length > maxQueuedRequests) response.shouldKeepAlive = false;
      if (queue.length === 1) startNext(connection);
    },
    fail(socket, error, respond) {
      const connection = connectionOf(socket);
      if (connection.hasFailed) return; // the parser fails again with every packet that follows
      connection.hasFailed = true;
      const { latest } = connection;
      if (!latest || latest.response.writableFinished) respond();
      else if (latest.request.complete) latest.response.once('finish', respond);
      else if (latest.isStarted) latest.request.emit('error', error);
      else connection.pendingError = error;
    },
    drain() {
      draining = true;
      for (const { queue } of connections.values()) {
        const [running] = queue;
        if (running && !running.response.headersSent) running.response.shouldKeepAlive = false;
      }
    },
    closeIdle() {
      for (const { socket, queue } of connections.values()) {
        if (queue[0]?.response.closed !== false) socket.destroy();
      }
    },
  };
}
