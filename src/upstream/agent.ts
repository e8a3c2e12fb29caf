/** The pool of connections to one environment of the bank; never shared with another environment. */

import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import type { Socket } from 'node:net';
import type { Environment } from '../flow/environment.ts';
import { connectorTo } from './connector.ts';
import type { Credentials } from './credentials.ts';
import { hintedMs } from './keep-alive-hint.ts';
import { createRest } from './rest.ts';

interface PoolSettings {
  /** Connections at most, per environment. */
  readonly maxSockets: number;
  /** A pooled connection idle for longer, in milliseconds, is closed: it must be less than the bank's own limit. */
  readonly idle: number;
}

/** What there is at the moment. */
interface PoolView {
  /** The connections that may be taken; the one used last comes last. */
  readonly idle: readonly Socket[];
  /** How many others there are: being made, in use, or at rest. */
  readonly busy: number;
  /** How many calls wait for one. */
  readonly waiting: number;
}

/** A pool that can be told to keep only what was used just now. */
export type Pool = HttpAgent & {
  readonly view: () => PoolView;
  /**
   * Closes the connections that were unused for this long, in milliseconds, or longer. Called just before a payment is
   * sent: the likelier a bank has closed a connection meanwhile, the likelier the payment's outcome would not be known.
   */
  readonly closeIdle: (idleMs: number) => void;
  /** Closes what is idle now, and every other connection when nobody waits for one: nothing new should begin here. */
  readonly drain: () => void;
};

/** Times on the clock of `performance.now()`. */
interface Connection {
  readonly socket: Socket;
  /** Nothing is asked on it, and nothing may be said. */
  isSilent: boolean;
  /** For how long the bank keeps it, by its last answer. Milliseconds. */
  keptForMs: number;
  unusedSinceMs: number;
}

/**
 * A pool whose connections all lead to one place by the same credentials, which Node's own must find out for each call.
 * The connection used last is taken first, so that surplus ones fall idle and close.
 *
 * Every connection rests before it goes back into the pool (rest.ts), and one that speaks unasked is closed.
 */
export function createAgent(
  { origin }: Environment,
  { maxSockets, idle: idleMs }: PoolSettings,
  credentials: Credentials = {},
): Pool {
  const { protocol } = new URL(origin);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const connect = connectorTo(origin, credentials);
  const open = new Set<Connection>();
  /** Those that may be taken. */
  let idle: Connection[] = [];
  const waiting: ClientRequest[] = [];
  let draining = false;
  let isToBeSwept = false;
  const rest = createRest(pool);

  function addRequest(request: ClientRequest): void {
    const connection = takeIdle();
    if (connection) reuse(connection, request);
    else if (open.size < maxSockets) use(newConnection(), request);
    else waiting.push(request);
  }

  function takeIdle(): Connection | undefined {
    for (let last = idle.pop(); last; last = idle.pop()) {
      if (last.socket.writable && !isTooOld(last)) return last;
      last.socket.destroy();
    }
    return undefined;
  }

  function reuse(connection: Connection, request: ClientRequest): void {
    connection.isSilent = false;
    connection.socket.ref();
    request.reusedSocket = true;
    use(connection, request);
  }

  function use(connection: Connection, request: ClientRequest): void {
    request.once('response', ({ rawHeaders }) => {
      connection.keptForMs = Math.min(idleMs, hintedMs(rawHeaders));
    });
    request.onSocket(connection.socket);
  }

  function newConnection(): Connection {
    const connection = { socket: connect(), isSilent: false, keptForMs: idleMs, unusedSinceMs: 0 };
    const { socket } = connection;
    open.add(connection);
    // For as long as it lives: listeners that come and go with every call cost more.
    socket.once('free', () => socket.on('data', () => connection.isSilent && socket.destroy()));
    socket.on('free', () => release(connection)).on('error', () => socket.destroy());
    socket.once('close', () => {
      open.delete(connection);
      idle = idle.filter((other) => other !== connection);
      serveNext();
    });
    return connection;
  }

  function serveNext(): void {
    const next = open.size < maxSockets && nextWaiting();
    if (next) use(newConnection(), next);
  }

  /** Whoever was given up meanwhile needs none. */
  function nextWaiting(): ClientRequest | undefined {
    let next = waiting.shift();
    while (next?.destroyed) next = waiting.shift();
    return next;
  }

  function release(connection: Connection): void {
    connection.isSilent = true;
    connection.unusedSinceMs = performance.now();
    // Node's own: it would keep the last call for as long as the connection.
    Object.assign(connection.socket, { _httpMessage: null });
    rest(connection);
  }

  function pool(connection: Connection): void {
    const { socket } = connection;
    const isOfUse = socket.writable && !isTooOld(connection);
    const next = isOfUse && nextWaiting();
    if (next) reuse(connection, next);
    else if (!isOfUse || draining) socket.destroy();
    else {
      socket.unref();
      idle.push(connection);
      sweepLater();
    }
  }

  function sweepLater(): void {
    if (isToBeSwept) return;
    isToBeSwept = true;
    setTimeout(() => {
      isToBeSwept = false;
      keepIdle((connection) => !isTooOld(connection));
      if (idle.length > 0) sweepLater();
    }, idleMs / 4).unref();
  }

  function keepIdle(isKept: (connection: Connection) => boolean): void {
    const others = idle.filter((connection) => !isKept(connection));
    if (others.length === 0) return;
    idle = idle.filter(isKept);
    for (const { socket } of others) socket.destroy();
  }

  function closeIdle(forMs: number): void {
    const latestMs = performance.now() - forMs;
    keepIdle(({ unusedSinceMs }) => unusedSinceMs > latestMs);
  }

  return Object.assign(new HttpAgent({ protocol, defaultPort, keepAlive: true, maxSockets }), {
    addRequest,
    view: () => ({
      idle: idle.map(({ socket }) => socket),
      busy: [...open].filter(({ socket }) => !socket.destroyed).length - idle.length,
      waiting: waiting.filter(({ destroyed }) => !destroyed).length,
    }),
    closeIdle,
    drain() {
      draining = true;
      closeIdle(0);
    },
    destroy() {
      for (const { socket } of open) socket.destroy();
    },
  });
}

const isTooOld = ({ unusedSinceMs, keptForMs }: Connection) => performance.now() >= unusedSinceMs + keptForMs;
