/** The bank's port: HTTP or HTTPS; it can be opened and closed repeatedly. */
import { once, setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BankOptions } from './bank.ts';
import { trackConnections } from './connections.ts';
import type { FaultContext } from './fault-context.ts';

/** The connection of a request. */
export interface BankConnection extends Pick<FaultContext, 'socket' | 'reset' | 'closeIdle' | 'wait'> {
  /** Counted from 1. */
  readonly number: number;
}

type Receive = (
  request: IncomingMessage,
  response: ServerResponse,
  connection: BankConnection,
) => Promise<void>;

/** A port that passes every request to a handler. */
export interface BankListener {
  /** @throws Error if it is already listening, or if the port is in use */
  start(port: number, host: string): Promise<void>;
  /** Closes all connections; has no effect if it is not listening. */
  stop(): Promise<void>;
  /** `http(s)://host:port`. @throws Error if it has never listened */
  origin(): string;
  /** TCP connections accepted so far. */
  connections(): number;
  /** Requests that Node's parser refused. */
  malformed(): number;
  /** Ends all waits of faults that have begun. */
  endDelays(): void;
}

/** A port that passes every request to `receive`; a TLS port if `tls` is given. */
export function createBankListener(receive: Receive, tls: BankOptions['tls']): BankListener {
  const connections = trackConnections();
  const delays = new Set<AbortController>();
  let malformed = 0;
  let origin: string | undefined;
  let running: { readonly server: Server; readonly closing: AbortController } | undefined;

  /** No time-outs: the client's own deadlines must detect a slow or idle connection. */
  function patientServer(): Server {
    const server = tls ? createTlsServer(tls) : createServer();
    server.requestTimeout = 0;
    server.headersTimeout = 0;
    server.keepAliveTimeout = 0;
    return server;
  }

  function attach(server: Server, closing: AbortSignal): void {
    const wait = async (ms: number) => {
      const delay = new AbortController();
      delays.add(delay);
      await waited(ms, AbortSignal.any([closing, delay.signal])).finally(() => delays.delete(delay));
      return !closing.aborted;
    };
    const closeIdle = () => server.closeIdleConnections();
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const { number, tcp } = connections.of(socket);
      const reset = () => void tcp.resetAndDestroy();
      receive(request, response, { number, socket, reset, wait, closeIdle }).catch((error) => {
        reportInternalError(response, error);
      });
    };
    server.on('connection', connections.accept);
    server.on('request', handle);
    server.on('checkExpectation', handle);
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      if (!error.code?.startsWith('HPE_')) return socket.destroy();
      malformed += 1;
      return socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    });
  }

  return {
    start: async (port, host) => {
      if (running) throw new Error(`the bank is already listening on ${origin}`);
      const closing = new AbortController();
      setMaxListeners(0, closing.signal);
      const server = patientServer();
      attach(server, closing.signal);
      await once(server.listen(port, host), 'listening');
      running = { server, closing };
      origin = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${portOf(server)}`;
    },
    stop: async () => {
      if (!running) return;
      const { server, closing } = running;
      running = undefined;
      closing.abort();
      const closed = once(server.close(), 'close');
      connections.drop();
      await closed;
    },
    origin: () => {
      if (origin === undefined) throw new Error('the bank has not been started');
      return origin;
    },
    connections: connections.count,
    malformed: () => malformed,
    endDelays() {
      for (const delay of delays) delay.abort();
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address === 'object' && address) return address.port;
  throw new Error('the bank is not listening on a port');
}

/** A bug of the bank itself: the test must see it and not mistake it for an injected fault. */
function reportInternalError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(500, { 'Content-Type': 'text/plain' }).end(`simulated bank: ${error}`);
}

/** Waits for this time, or until the signal is aborted. */
async function waited(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
