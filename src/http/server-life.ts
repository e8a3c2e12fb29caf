/** Opening and closing of a server, as promises. */

import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';

/** The open connections of each server that was opened here. */
const connections = new WeakMap<Server, Set<Socket>>();

/** Listens; resolves with the port, which differs from the asked one if that was 0. Rejects if it cannot be had. */
export function open(server: Server, host: string, port: number): Promise<number> {
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port); // an address object, because it listens on a port
    });
  });
}

/** How often connections are closed whose last request has ended meanwhile. Milliseconds. */
const sweepMs = 50;

/**
 * Takes no new connection, lets running requests end, and then closes.
 *
 * Nobody can hold it up: Node counts a connection as busy that has never been used, and its `http.Server.close`
 * stops the time-outs of those that send slowly, so neither is left to it.
 */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), sweepMs);
    Reflect.apply(NetServer.prototype.close, server, [
      () => {
        clearInterval(sweep);
        resolve();
      },
    ]);
    for (const socket of connections.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy();
    server.closeIdleConnections();
  });
}
