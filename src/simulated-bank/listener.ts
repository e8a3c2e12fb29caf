/** The bank's port: HTTP or HTTPS, every TCP connection numbered and within reach of a reset. */
import { once, setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BankOptions } from './bank.ts';
import type { Exchange } from './exchange.ts';

/** The connection a request came on. */
export interface Connection extends Pick<Exchange, 'socket' | 'reset' | 'closeIdle' | 'wait'> {
  /** Counted from 1. */
  readonly number: number;
}

type Receive = (request: IncomingMessage, response: ServerResponse, connection: Connection) => Promise<void>;

/** A port that can be opened and closed again and again. */
export interface Listener {
  start(port: number, host: string): Promise<void>;
  stop(): Promise<void>;
  /** `http(s)://host:port`. @throws Error if it has never listened */
  origin(): string;
  /** TCP connections accepted so far. */
  connections(): number;
  /** Requests that Node's parser refused. */
  malformed(): number;
}

interface Accepted {
  readonly number: number;
  readonly tcp: Socket;
}

/** A port that hands every request to `receive`, a TLS port if `tls` is given. */
export function createListener(receive: Receive, tls: BankOptions['tls']): Listener {
  let origin: string | undefined;
  let accepted = 0;
  let malformed = 0;
  let close: (() => Promise<void>) | undefined;

  async function start(port: number, host: string): Promise<void> {
    if (close) throw new Error(`the bank is listening on ${origin} already`);
    const server = tls ? createTlsServer(tls) : createServer();
    const open = new Map<string, Accepted>();
    const closing = new AbortController();
    setMaxListeners(0, closing.signal);
    // A client that never finishes is for the client's own deadlines to notice, and so is a connection left idle.
    Object.assign(server, { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });

    server.on('connection', (tcp: Socket) => {
      accepted += 1;
      const key = peerOf(tcp);
      open.set(key, { number: accepted, tcp });
      tcp.once('close', () => open.delete(key));
    });
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const { number = 0, tcp = socket } = open.get(peerOf(socket)) ?? {};
      const wait = (ms: number) => waited(ms, closing.signal);
      const reset = () => void tcp.resetAndDestroy();
      const connection = { number, socket, reset, wait, closeIdle: () => server.closeIdleConnections() };
      receive(request, response, connection).catch((error) => confess(response, error));
    };
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (!error.code?.startsWith('HPE_')) return socket.destroy();
      malformed += 1;
      return socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    });
    server.on('request', handle);
    server.on('checkExpectation', handle);

    server.listen(port, host);
    await once(server, 'listening');
    const address = server.address();
    const actual = typeof address === 'object' && address ? address.port : port;
    origin = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${actual}`;
    close = async () => {
      close = undefined;
      closing.abort();
      const closed = once(server, 'close');
      server.close();
      for (const { tcp } of open.values()) tcp.destroy();
      await closed;
    };
  }

  return {
    start,
    stop: async () => close?.(),
    origin: () => {
      if (origin === undefined) throw new Error('the bank has not been started');
      return origin;
    },
    connections: () => accepted,
    malformed: () => malformed,
  };
}

/** Names a connection in plain and under TLS alike. */
const peerOf = (socket: Socket) => `${socket.remoteAddress}:${socket.remotePort}`;

/** A mistake of the bank's own, which a test shall see and not take for a fault it asked for. */
function confess(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { 'Content-Type': 'text/plain' }).end(`simulated bank: ${error}`);
}

async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
