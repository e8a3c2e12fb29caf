/** A TLS door before a simulated bank, which can turn connections away before a byte of a request has come through. */

import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { certificate, key } from '../unit/simulated-bank/certificate.ts';
import { writeConfigFile } from './command.ts';
import { listen } from './ports.ts';

export interface TlsBankProxy {
  /** An environment of the configuration that lies behind this door. */
  readonly environment: object;
  /** The next connection is met like this, before its handshake. */
  onNextConnection(meet: (socket: Socket) => void): void;
}

/** A door that lets everybody in; closed when the test ends. */
export async function startTlsBankProxy(
  t: TestContext,
  { baseUrl }: { readonly baseUrl: string },
): Promise<TlsBankProxy> {
  const meetings: ((socket: Socket) => void)[] = [];
  const sockets = new Set<Socket>();
  const inside = createTlsServer({ key, cert: certificate }, (socket) => {
    const onward = connect(Number(new URL(baseUrl).port), '127.0.0.1');
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward]) end.on('error', () => [socket, onward].map((one) => one.destroy()));
  });
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    const meet = meetings.shift();
    if (meet) meet(socket);
    else inside.emit('connection', socket);
  });
  const port = await listen(server);
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    environment: { baseUrl: `https://127.0.0.1:${port}`, tls: { caFile: writeConfigFile(t, certificate) } },
    onNextConnection: (meet) => void meetings.push(meet),
  };
}
