/** Opening and closing of a server, as promises. */

import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';

/** The open connections of each server that was opened here. */
const connections = new WeakMap<Server, Set<Socket>>();

/**
 * Listens; resolves with the port, which differs from the asked one if that was 0. Rejects if it cannot be had.
 *
 * @param holder whether other processes of this user may listen on the port, too (SO_REUSEPORT; Linux and some others)
 */
export function openServer(
  server: Server,
  host: string,
  port: number,
  holder: 'alone' | 'with others' = 'alone',
): Promise<number> {
  const sockets = new Set<Socket>();
  connections.set(server, sockets);
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, reusePort: holder === 'with others' }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port); // an address object, because it listens on a port
    });
  });
}

/**
 * How often connections are closed on which nothing is due. The first time lets a request that is on its way already
 * arrive. Milliseconds.
 */
const sweepMs = 100;

/**
 * Takes no new connection, lets running requests end, and then closes.
 *
 * Node's own idea of an idle connection is of no use here: to it, one that was never used is busy, and one whose
 * answer is still on its way to a slow reader is idle.
 *
 * @param isBusy whether an answer is still due on a connection, or not yet sent
 */
export function closeServer(
  server: Server,
  isBusy: (socket: Socket) => boolean = () => false,
): Promise<void> {
  return new Promise((resolve) => {
    const sweep = () => {
      for (const socket of connections.get(server) ?? []) if (!isBusy(socket)) socket.destroy();
    };
    // Timers run before the sockets are read: what has come while this process was busy is heard of first.
    const timer = setInterval(() => setImmediate(sweep), sweepMs);
    // Not `http.Server.close`: it stops the time-outs of those that send slowly.
    Reflect.apply(NetServer.prototype.close, server, [
      () => {
        clearInterval(timer);
        resolve();
      },
    ]);
  });
}
