/** A TLS proxy in front of a simulated bank, which can handle single connections before their TLS handshake. */

import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';
import { writeConfigFile } from './command.ts';
import { listen } from './ports.ts';

export interface TlsBankProxy {
  /** Configuration of an environment that uses this proxy. */
  readonly environment: object;
  /** Handles the next connection instead of the proxy. */
  onNextConnection(handler: (socket: Socket) => void): void;
}

export async function startTlsBankProxy(
  t: TestContext,
  { baseUrl }: { readonly baseUrl: string },
): Promise<TlsBankProxy> {
  const handlers: ((socket: Socket) => void)[] = [];
  const sockets = new Set<Socket>();
  const tlsServer = createTlsServer({ key, cert: certificate }, (socket) => {
    const bankSocket = connect(Number(new URL(baseUrl).port), '127.0.0.1');
    socket.pipe(bankSocket).pipe(socket);
    for (const end of [socket, bankSocket])
      end.on('error', () => [socket, bankSocket].map((one) => one.destroy()));
  });
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    const handler = handlers.shift();
    if (handler) handler(socket);
    else tlsServer.emit('connection', socket);
  });
  const port = await listen(server);
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    environment: { baseUrl: `https://127.0.0.1:${port}`, tls: { caFile: writeConfigFile(t, certificate) } },
    onNextConnection: (handler) => void handlers.push(handler),
  };
}
