/** A plain TCP server, for responses that no HTTP server sends. */

import { createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { listen } from './ports.ts';

export interface PlainServer {
  readonly port: number;
  /** Every connection accepted so far, in order, the closed ones included. */
  readonly connections: readonly Socket[];
  /** Every byte received so far, on all connections. */
  readonly received: string;
}

/**
 * A started server; closed with all its connections when the test ends.
 *
 * @param heard called with each piece that comes; does nothing unless told
 */
export async function startPlainServer(
  t: TestContext,
  heard: (socket: Socket, piece: string) => void = () => {},
): Promise<PlainServer> {
  const connections: Socket[] = [];
  let received = '';
  const server = createServer((socket) => {
    connections.push(socket);
    socket
      .setEncoding('latin1')
      .on('error', () => {})
      .on('data', (piece: string) => {
        received += piece;
        heard(socket, piece);
      });
  });
  const port = await listen(server);
  t.after(() => {
    server.close();
    for (const socket of connections) socket.destroy();
  });
  return {
    port,
    connections,
    get received() {
      return received;
    },
  };
}
