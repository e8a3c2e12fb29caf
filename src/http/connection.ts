/** The requests of one connection, one at a time: the next begins when the answer to the one before is out. */

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type BatchScheduler, createBatchScheduler } from '../request/batch-scheduler.ts';
import type { GatewayError } from '../request/errors.ts';

/** A request and the answer to it. */
export interface QueuedRequest {
  readonly request: IncomingMessage;
  readonly answer: ServerResponse;
  /** Whether somebody listens to the request already. */
  isBegun: boolean;
}

/** What is known of a connection. */
interface ConnectionQueue {
  /** The first one runs, the others wait. Once the last of the connection has begun to end, it stays. */
  readonly exchanges: QueuedRequest[];
  /** `undefined` while nothing is due: what a connection that rests was used for is not kept. */
  latest: QueuedRequest | undefined;
  /** Came behind the last one that will be served. */
  passedOver: number;
  /** What was found wrong with the latest request, while it waited. */
  wrong?: GatewayError;
}

export interface RequestQueue {
  /** Takes the next request of a connection. */
  readonly enqueue: RequestListener;
  /** The latest request of a connection that was or will be served; `undefined` if its answer is out. */
  latestOn(socket: Socket): QueuedRequest | undefined;
  /** Tells a request that not all of it will come, now or when it begins. */
  failLatest(socket: Socket, error: GatewayError): void;
  /** Whether an answer on this connection is still to be written, or still being sent. */
  isBusy(socket: Socket): boolean;
  /** From now on every answer whose head is not written yet says `Connection: close`. */
  drain(): void;
}

/**
 * How many requests may wait on a connection. The answer to the last of them is the last of the connection; who goes on
 * sending in spite of that is hung up on when as many more have come.
 */
export const maxQueuedRequests = 32;

/**
 * @param begin  serves a request; those that come together begin together
 * @param rested told of a connection on which nothing is due any more
 */
export function createRequestQueue(
  begin: RequestListener,
  rested: (socket: Socket) => void,
  schedule: BatchScheduler = createBatchScheduler(),
): RequestQueue {
  // A Map, because connections live long: exchanges would not be kept in one (flow/roll.ts).
  const lines = new Map<Socket, ConnectionQueue>();
  let draining = false;

  const lineOf = (socket: Socket): ConnectionQueue => {
    const known = lines.get(socket);
    if (known) return known;
    const line: ConnectionQueue = { exchanges: [], latest: undefined, passedOver: 0 };
    lines.set(socket, line);
    socket.once('close', () => lines.delete(socket));
    return line;
  };

  const beginNext = (line: ConnectionQueue, socket: Socket): void => {
    const [next] = line.exchanges;
    if (!next) {
      line.latest = undefined;
      rested(socket);
      return;
    }
    next.answer.once('close', () => {
      if (!next.answer.shouldKeepAlive || socket.destroyed) return; // nobody would get another answer
      line.exchanges.shift();
      beginNext(line, socket);
    });
    if (draining) next.answer.shouldKeepAlive = false;
    schedule(() => {
      if (next.answer.closed) return; // the TPP has hung up
      next.isBegun = true;
      begin(next.request, next.answer);
      if (line.wrong && next === line.latest) next.request.emit('error', line.wrong);
    });
  };

  return {
    enqueue(request, answer) {
      const { socket } = request;
      const line = lineOf(socket);
      const { exchanges } = line;
      if (exchanges.at(-1)?.answer.shouldKeepAlive === false) {
        if (++line.passedOver > maxQueuedRequests) socket.destroy();
        return;
      }
      line.latest = { request, answer, isBegun: false };
      exchanges.push(line.latest);
      if (exchanges.length > maxQueuedRequests) answer.shouldKeepAlive = false;
      if (exchanges.length === 1) beginNext(line, socket);
    },
    latestOn: (socket) => lines.get(socket)?.latest,
    failLatest(socket, error) {
      const line = lines.get(socket);
      if (!line?.latest) return;
      if (line.latest.isBegun) line.latest.request.emit('error', error);
      else line.wrong = error;
    },
    isBusy: (socket) => lines.get(socket)?.exchanges[0]?.answer.closed === false,
    drain() {
      draining = true;
      for (const { exchanges } of lines.values()) {
        const [running] = exchanges;
        if (running && !running.answer.headersSent) running.answer.shouldKeepAlive = false;
      }
    },
  };
}

// MERGED HEADER (rewrite or remove):
/* Room for new connections: when the door is nearly full, those that rest have to go. */

/** Which connections rest between two requests, as far as they are told of. */
export interface ConnectionLimit {
  markIdle(socket: Socket): void;
  markActive(socket: Socket): void;
}

/** At which part of the limit resting connections are closed: what is left is room for those that come at once. */
const nearlyFull = 0.95;

/**
 * Limits the connections of a server. What comes beyond the limit is closed without a word, and the server emits `drop`:
 * so it is only when hardly any connection rests.
 */
export function limitConnections(server: Server, maxConnections: number): ConnectionLimit {
  // Cluster workers would otherwise pass on to one another what is too much for them.
  Object.assign(server, { maxConnections, dropMaxConnection: true });
  const resting = new Set<Socket>(); // in the order in which they began to rest
  const known = new WeakSet<Socket>();
  let open = 0;
  server.on('connection', (socket: Socket) => {
    open++;
    socket.once('close', () => open--);
    if (open <= maxConnections * nearlyFull) return;
    const [longest] = resting;
    longest?.destroy();
    if (longest) resting.delete(longest);
  });
  return {
    markIdle(socket) {
      if (socket.destroyed) return;
      resting.add(socket);
      if (known.has(socket)) return; // it rests after every request
      known.add(socket);
      socket.once('close', () => resting.delete(socket));
    },
    markActive: (socket) => void resting.delete(socket),
  };
}

// MERGED HEADER (rewrite or remove):
/* Answers that are on their way to TPPs that do not read them: how long they are kept, and how many. */

interface SlowReaderLimits {
  /** How long a TPP may take nothing of its answer, in milliseconds; noticed within twice that. */
  readonly writeTimeout: number;
  /** Bytes of all answers together; beyond it, whoever has been reading for longest is hung up on. */
  readonly maxUnread: number;
}

/** Watches an answer from its end being written until its last byte is with the system. */
export type WatchResponse = (answer: ServerResponse) => void;

/** Nothing is unread yet. */
export function createSlowReaderLimit({ writeTimeout, maxUnread }: SlowReaderLimits): WatchResponse {
  const unread = new Map<ServerResponse, number>(); // in the order in which they were written
  let total = 0;
  const forget = (answer: ServerResponse) => {
    total -= unread.get(answer) ?? 0;
    unread.delete(answer);
  };

  return (answer) => {
    const { socket } = answer.req;
    // Emitted when all of the answer is handed to the connection, after it was written and those before it are out.
    answer.once('prefinish', () => {
      const bytes = socket.writableLength;
      if (bytes === 0) return; // the system has taken it all: so it is with nearly every answer
      unread.set(answer, bytes);
      total += bytes;
      // Node looks whether anything was taken since it looked last, and hangs up if not.
      socket.setTimeout(writeTimeout);
      // Before Node's own listener, which limits how long the connection may rest from then on.
      answer.prependOnceListener('finish', () => {
        forget(answer);
        socket.setTimeout(0);
      });
      answer.once('close', () => forget(answer));
      for (const slowest of unread.keys()) {
        if (total <= maxUnread) return;
        slowest.req.socket.destroy();
        forget(slowest); // a small one: more than one may have to go
      }
    });
  };
}
