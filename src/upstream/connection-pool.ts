/** The pool of connections to one environment of the bank; never shared with another environment. */

import { type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Credentials } from '../certificates/tls-credentials.ts';
import { lowerCase } from '../pis/headers.ts';
import type { Environment } from '../request/messages.ts';
import { createConnector } from './connector.ts';
import type { EgressProxy } from './egress-proxy.ts';
import { createIdleQuarantine } from './idle-quarantine.ts';

interface PoolSettings {
  readonly maxSockets: number;
  /** Milliseconds after which an idle connection is closed; must be less than the bank's own limit. */
  readonly idle: number;
  /** Milliseconds after which a connection is not used for another request: the next one looks up the name again. */
  readonly maxAge: number;
}

interface PoolStats {
  /** Connections that may be reused; the one used last comes last. */
  readonly idle: readonly Socket[];
  /** All other connections: being established, in use, or in quarantine. */
  readonly busy: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
}

/** An agent for node:http that can close connections by their idle time. */
export type ConnectionPool = HttpAgent & {
  readonly stats: () => PoolStats;
  /**
   * Closes the connections that were idle for at least this long, in milliseconds. Called before a payment is sent: the
   * longer a connection is idle, the more likely the bank closes it just then, and the outcome of the payment is unknown.
   */
  readonly closeIdle: (idleMs: number) => void;
  /** Closes idle connections now, and each other one as soon as no request waits for it. For a pool that is replaced. */
  readonly drain: () => void;
};

interface PooledConnection {
  readonly socket: Socket;
  /** No request uses it: data from the bank is an error. */
  isIdle: boolean;
  /** How long the bank keeps it open, according to its last response. */
  keepAliveMs: number;
  /** These two are on the clock of `performance.now()`. */
  idleSinceMs: number;
  readonly openUntilMs: number;
}

/** Fields of Node that its types do not know. */
interface SocketOfNode {
  /** The request on this connection; still set when Node emits `free`. */
  _httpMessage?: (ClientRequest & { readonly res?: IncomingMessage | null }) | null;
}

/**
 * All connections of this pool have the same target and credentials; Node's own agent determines both for each request. The
 * most recently used connection is reused first, so that surplus ones become idle and close.
 *
 * Every connection passes a quarantine before its reuse (idle-quarantine.ts); one that receives data while idle is closed.
 */
export function createConnectionPool(
  { origin }: Pick<Environment, 'origin'>,
  { maxSockets, idle: maxIdleMs, maxAge }: PoolSettings,
  credentials: Credentials = {},
  proxy?: EgressProxy,
): ConnectionPool {
  const { protocol } = new URL(origin);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const connect = createConnector(origin, credentials, proxy);
  const open = new Set<PooledConnection>();
  /** Connections that may be reused. */
  let idle: PooledConnection[] = [];
  const waiting: ClientRequest[] = [];
  let isDraining = false;
  let isSweepScheduled = false;
  const quarantine = createIdleQuarantine<PooledConnection>(serveWaiting);

  function addRequest(request: ClientRequest): void {
    waiting.push(request);
    serveWaiting();
  }

  function serveWaiting(): void {
    for (let next = nextWaiting(); next; next = nextWaiting()) {
      const connection = takeIdle();
      if (connection) reuse(connection, next);
      else if (open.size < maxSockets && !quarantine.isDue()) next.onSocket(newConnection().socket);
      else {
        waiting.unshift(next);
        quarantine.awaitNext();
        return;
      }
    }
    if (isDraining) closeIdle(0);
  }

  /** Skips requests that were destroyed while they waited. */
  function nextWaiting(): ClientRequest | undefined {
    let next = waiting.shift();
    while (next?.destroyed) next = waiting.shift();
    return next;
  }

  function takeIdle(): PooledConnection | undefined {
    endQuarantines();
    for (let last = idle.pop(); last; last = idle.pop()) {
      if (last.socket.writable && !hasExpired(last)) return last;
      last.socket.destroy();
    }
    return undefined;
  }

  function endQuarantines(): void {
    for (const connection of quarantine.release()) idle.push(connection);
  }

  function reuse(connection: PooledConnection, request: ClientRequest): void {
    connection.isIdle = false;
    connection.socket.ref();
    request.reusedSocket = true;
    request.onSocket(connection.socket);
  }

  function newConnection(): PooledConnection {
    const socket = connect();
    const openUntilMs = performance.now() + maxAge;
    const connection: PooledConnection = {
      socket,
      isIdle: false,
      keepAliveMs: maxIdleMs,
      idleSinceMs: 0,
      openUntilMs,
    };
    open.add(connection);
    // Permanent listeners cost less than adding and removing them with every request.
    socket.once('free', () => socket.on('data', () => connection.isIdle && socket.destroy()));
    socket.on('free', () => release(connection)).on('error', () => socket.destroy());
    socket.once('close', () => {
      open.delete(connection);
      remove(connection);
      serveWaiting();
    });
    return connection;
  }

  function release(connection: PooledConnection): void {
    const socket: Socket & SocketOfNode = connection.socket;
    connection.isIdle = true;
    connection.idleSinceMs = performance.now();
    connection.keepAliveMs = Math.min(maxIdleMs, keepAliveHintMs(socket._httpMessage?.res?.rawHeaders ?? []));
    socket._httpMessage = null; // it would keep the last request in memory as long as the connection
    const isReusable = socket.writable && !hasExpired(connection);
    if (!isReusable || (isDraining && waiting.length === 0)) return void socket.destroy();
    socket.unref();
    quarantine.add(connection);
    scheduleSweep();
    if (waiting.length > 0) quarantine.awaitNext();
  }

  function scheduleSweep(): void {
    if (isSweepScheduled) return;
    isSweepScheduled = true;
    setTimeout(() => {
      isSweepScheduled = false;
      closeIdleIf(hasExpired);
      if (idle.length + quarantine.connections().length > 0) scheduleSweep();
    }, maxIdleMs / 4).unref();
  }

  function closeIdle(idleMs: number): void {
    const idleSinceLimitMs = performance.now() - idleMs;
    const longestIdle = idle[0] ?? quarantine.connections()[0]; // both are in the order in which they became idle
    if (!longestIdle || longestIdle.idleSinceMs > idleSinceLimitMs) return;
    closeIdleIf(({ idleSinceMs }) => idleSinceMs <= idleSinceLimitMs);
  }

  function closeIdleIf(isClosed: (connection: PooledConnection) => boolean): void {
    for (const connection of [...quarantine.connections(), ...idle].filter(isClosed)) {
      remove(connection);
      connection.socket.destroy();
    }
  }

  function remove(connection: PooledConnection): void {
    idle = idle.filter((other) => other !== connection);
    quarantine.remove(connection);
  }

  return Object.assign(new HttpAgent({ protocol, defaultPort, keepAlive: true, maxSockets }), {
    addRequest,
    stats() {
      endQuarantines();
      return {
        idle: idle.map(({ socket }) => socket),
        busy: [...open].filter(({ socket }) => !socket.destroyed).length - idle.length,
        waiting: waiting.filter(({ destroyed }) => !destroyed).length,
      };
    },
    closeIdle,
    drain() {
      isDraining = true;
      closeIdle(0);
    },
    destroy() {
      for (const { socket } of open) socket.destroy();
    },
  });
}

const hasExpired = ({ idleSinceMs, keepAliveMs, openUntilMs }: PooledConnection) =>
  performance.now() >= Math.min(idleSinceMs + keepAliveMs, openUntilMs);

/** The bank's limit may pass while our next request is on its way. */
const keepAliveMarginMs = 1_000;

/**
 * How long the connection may be reused, from `Keep-Alive: timeout=5` as nginx, Apache and Node send it. The parameters may come
 * in any order (RFC 2068 section 19.7.1.1).
 *
 * @returns milliseconds; infinite without the parameter
 */
export function keepAliveHintMs(rawHeaders: readonly string[]): number {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length !== 10 || lowerCase(name) !== 'keep-alive') continue;
    const [, seconds] = keepAliveTimeout.exec(rawHeaders[at + 1] ?? '') ?? [];
    if (seconds !== undefined) return Math.max(0, Number(seconds) * 1_000 - keepAliveMarginMs);
  }
  return Number.POSITIVE_INFINITY;
}

const keepAliveTimeout = /(?:^|,)\s*timeout\s*=\s*"?(\d+)/i;
