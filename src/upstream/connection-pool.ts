/** The pool of connections to one environment of the bank; never shared with another environment. */

import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import type { Socket } from 'node:net';
import { lowerCase } from '../pis/headers.ts';
import type { Environment } from '../request/messages.ts';
import { createConnector } from './connector.ts';
import type { Credentials } from './credentials.ts';
import { createIdleQuarantine } from './idle-quarantine.ts';

interface PoolSettings {
  /** Connections at most, per environment. */
  readonly maxSockets: number;
  /** A pooled connection idle for longer, in milliseconds, is closed: it must be less than the bank's own limit. */
  readonly idle: number;
}

/** What there is at the moment. */
interface PoolStats {
  /** The connections that may be taken; the one used last comes last. */
  readonly idle: readonly Socket[];
  /** How many others there are: being made, in use, or at rest. */
  readonly busy: number;
  /** How many calls wait for one. */
  readonly waiting: number;
}

/** A pool that can be told to keep only what was used just now. */
export type ConnectionPool = HttpAgent & {
  readonly stats: () => PoolStats;
  /**
   * Closes the connections that were unused for this long, in milliseconds, or longer. Called just before a payment is
   * sent: the likelier a bank has closed a connection meanwhile, the likelier the payment's outcome would not be known.
   */
  readonly closeIdle: (idleMs: number) => void;
  /** Closes what is idle now, and every other connection when nobody waits for one: nothing new should begin here. */
  readonly drain: () => void;
};

/** Times on the clock of `performance.now()`. */
interface PooledConnection {
  readonly socket: Socket;
  /** Nothing is asked on it, and nothing may be said. */
  isIdle: boolean;
  /** For how long the bank keeps it, by its last answer. Milliseconds. */
  keepAliveMs: number;
  idleSinceMs: number;
}

/**
 * A pool whose connections all lead to one place by the same credentials, which Node's own must find out for each call.
 * The connection used last is taken first, so that surplus ones fall idle and close.
 *
 * Every connection rests before it goes back into the pool (rest.ts), and one that speaks unasked is closed.
 */
export function createConnectionPool(
  { origin }: Environment,
  { maxSockets, idle: idleMs }: PoolSettings,
  credentials: Credentials = {},
): ConnectionPool {
  const { protocol } = new URL(origin);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const connect = createConnector(origin, credentials);
  const open = new Set<PooledConnection>();
  /** Those that may be taken. */
  let idle: PooledConnection[] = [];
  const waiting: ClientRequest[] = [];
  let draining = false;
  let isSweepScheduled = false;
  const quarantine = createIdleQuarantine(returnToPool);

  function addRequest(request: ClientRequest): void {
    const connection = takeIdle();
    if (connection) reuse(connection, request);
    else if (open.size < maxSockets) use(newConnection(), request);
    else waiting.push(request);
  }

  function takeIdle(): PooledConnection | undefined {
    for (let last = idle.pop(); last; last = idle.pop()) {
      if (last.socket.writable && !hasExpired(last)) return last;
      last.socket.destroy();
    }
    return undefined;
  }

  function reuse(connection: PooledConnection, request: ClientRequest): void {
    connection.isIdle = false;
    connection.socket.ref();
    request.reusedSocket = true;
    use(connection, request);
  }

  function use(connection: PooledConnection, request: ClientRequest): void {
    request.once('response', ({ rawHeaders }) => {
      connection.keepAliveMs = Math.min(idleMs, keepAliveHintMs(rawHeaders));
    });
    request.onSocket(connection.socket);
  }

  function newConnection(): PooledConnection {
    const connection = { socket: connect(), isIdle: false, keepAliveMs: idleMs, idleSinceMs: 0 };
    const { socket } = connection;
    open.add(connection);
    // For as long as it lives: listeners that come and go with every call cost more.
    socket.once('free', () => socket.on('data', () => connection.isIdle && socket.destroy()));
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

  function release(connection: PooledConnection): void {
    connection.isIdle = true;
    connection.idleSinceMs = performance.now();
    // Node's own: it would keep the last call for as long as the connection.
    Object.assign(connection.socket, { _httpMessage: null });
    quarantine(connection);
  }

  function returnToPool(connection: PooledConnection): void {
    const { socket } = connection;
    const isOfUse = socket.writable && !hasExpired(connection);
    const next = isOfUse && nextWaiting();
    if (next) reuse(connection, next);
    else if (!isOfUse || draining) socket.destroy();
    else {
      socket.unref();
      idle.push(connection);
      scheduleSweep();
    }
  }

  function scheduleSweep(): void {
    if (isSweepScheduled) return;
    isSweepScheduled = true;
    setTimeout(() => {
      isSweepScheduled = false;
      closeIdleExcept((connection) => !hasExpired(connection));
      if (idle.length > 0) scheduleSweep();
    }, idleMs / 4).unref();
  }

  function closeIdleExcept(isKept: (connection: PooledConnection) => boolean): void {
    const others = idle.filter((connection) => !isKept(connection));
    if (others.length === 0) return;
    idle = idle.filter(isKept);
    for (const { socket } of others) socket.destroy();
  }

  function closeIdle(forMs: number): void {
    const latestMs = performance.now() - forMs;
    closeIdleExcept(({ idleSinceMs }) => idleSinceMs > latestMs);
  }

  return Object.assign(new HttpAgent({ protocol, defaultPort, keepAlive: true, maxSockets }), {
    addRequest,
    stats: () => ({
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

const hasExpired = ({ idleSinceMs, keepAliveMs }: PooledConnection) =>
  performance.now() >= idleSinceMs + keepAliveMs;

// MERGED HEADER (rewrite or remove):
/* How long a bank says that it keeps an idle connection: `Keep-Alive: timeout=5`, which nginx, Apache and Node write. */

/** What it says may be over before our next request is there. Milliseconds. */
const marginMs = 1_000;

/** Milliseconds for which the connection may be used again; without end if the answer does not say. */
export function keepAliveHintMs(rawHeaders: readonly string[]): number {
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && isKeepAliveField(name));
  if (at < 0) return Number.POSITIVE_INFINITY;
  const [, seconds] = /^timeout=(\d+)/.exec(rawHeaders[at + 1] ?? '') ?? [];
  return seconds === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(seconds) * 1_000 - marginMs);
}

const isKeepAliveField = (name: string) => name.length === 10 && lowerCase(name) === 'keep-alive';
